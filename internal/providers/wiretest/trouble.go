package wiretest

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Break plants faults; the first one that fits a request and is not used up
// takes it.
func (s *Server) Break(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.from = len(s.calls)
		s.faults = append(s.faults, &f)
	}
}

// Heal takes all faults back.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// fault finds the fault that takes a request.
func (s *Server) fault(route Route, req *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if (f.Route != "" && f.Route != route.Name()) || !strings.Contains(req.URL.String(), f.Contains) {
			continue
		}
		if f.Past != "" && !slices.ContainsFunc(s.calls[f.from:], func(c Call) bool { return c.Route == f.Past }) {
			continue
		}
		f.seen++
		if f.seen <= f.After || (f.Times > 0 && f.seen > f.After+f.Times) {
			continue
		}
		if f.Every > 0 && (f.seen-f.After)%f.Every != 0 {
			continue
		}
		return f
	}
	return nil
}

// trouble answers in place of the route, or after it.
func (s *Server) trouble(f *Fault, route Route, w http.ResponseWriter, req *http.Request) {
	if !s.pause(req, f.Delay) {
		return
	}
	answer := newMemory()
	if f.Late || f.asks() {
		route.Serve(answer, f.altered(route, req))
	}
	if f.Edit != nil {
		body := f.Edit(bytes.Clone(answer.body.Bytes()))
		answer.body.Reset()
		answer.body.Write(body)
	}
	if f.Status != 0 {
		answer = newMemory()
		answer.header.Set("Content-Type", "application/json")
		answer.status = f.Status
	}
	if f.Body != "" || f.Status != 0 {
		answer.body.Reset()
		answer.body.WriteString(f.Body)
	}
	for name, value := range f.Header {
		answer.header.Set(name, value)
	}
	if f.HeaderFunc != nil {
		for name, value := range f.HeaderFunc() {
			answer.header.Set(name, value)
		}
	}
	if f.Flood > 0 {
		s.flood(f, answer, w)
		return
	}
	s.send(f.Trouble, answer, w, req)
}

// asks says that the answer of the route itself is needed.
func (f *Fault) asks() bool {
	return f.Status == 0 && f.Body == "" && f.Trouble != TroubleHang && f.Trouble != TroubleReset
}

// altered is a request as the route gets to see it.
func (f *Fault) altered(route Route, req *http.Request) *http.Request {
	if f.Forget == "" && f.Other == "" {
		return req
	}
	seen := req.Clone(req.Context())
	if f.Forget != "" {
		query := req.URL.Query()
		query.Del(f.Forget)
		seen.URL.RawQuery = query.Encode()
	}
	if f.Other != "" {
		for name := range route.wildcards() {
			if req.PathValue(name) == f.Contains {
				seen.SetPathValue(name, f.Other)
			}
		}
	}
	return seen
}

// send sends an answer through a connection that has this trouble.
func (s *Server) send(trouble Trouble, answer *memory, w http.ResponseWriter, req *http.Request) {
	switch trouble {
	case TroubleHang:
		s.hang(req)
		panic(http.ErrAbortHandler)
	case TroubleReset:
		reset(w)
	case TroubleHangBody, TroubleTruncate:
		answer.half(w)
		if trouble == TroubleHangBody {
			s.hang(req)
		}
		panic(http.ErrAbortHandler)
	case TroubleHuge:
		answer.header.Del("Content-Length")
		answer.head(w)
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range 50 {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
		_, _ = w.Write(answer.body.Bytes())
	case TroubleDrip:
		answer.head(w)
		for again := true; again; again = s.pause(req, time.Second) {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // a transport without it sends all at the end
		}
	default:
		answer.send(w)
	}
}

// flood sends bytes until there are enough or the client leaves.
func (s *Server) flood(f *Fault, answer *memory, w http.ResponseWriter) {
	if f.Length {
		answer.header.Set("Content-Length", strconv.FormatInt(f.Flood, 10))
	}
	answer.head(w)
	piece := bytes.Repeat([]byte{f.FloodOf}, 1<<20)
	for sent := int64(0); sent < f.Flood; {
		n, err := w.Write(piece)
		sent += int64(n)
		s.mu.Lock()
		s.flooded = max(s.flooded, sent)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Flooded is how many bytes of one flood a client has taken at most.
func (s *Server) Flooded() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flooded
}

// half sends the headers of more than there is, and half of the body.
func (m *memory) half(w http.ResponseWriter) {
	body := m.body.Bytes()
	m.header.Set("Content-Length", strconv.Itoa(len(body)+64))
	m.head(w)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush() // a transport without it sends all at the end
}

// reset breaks the connection; TCP says so to the other side at once.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// hang waits until the client leaves or the test ends.
func (s *Server) hang(req *http.Request) {
	select {
	case <-req.Context().Done():
	case <-s.ended:
	}
}
