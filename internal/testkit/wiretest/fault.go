package wiretest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault makes answers fail. A fault's own answer is not compared with the contract.
type Fault struct {
	Route string // Route.Name; "" = every route
	// Contains must be in the path or query: one sandbox's id, a page token.
	Contains string
	// Past is a route that must be called first: for an API that fails after it has accepted a
	// request.
	Past  string
	After int // matching requests before the first fault
	Every int // of the following ones each n-th is affected; 0 = each
	Times int // how many are affected; 0 = all

	Delay   time.Duration // before anything else
	Status  int           // answers with this instead of asking the route
	Header  map[string]string
	Body    string // with Status 0 it replaces the route's own body
	Trouble Trouble
	Without []string // headers that are removed
	// HeaderFunc makes more headers for each answer.
	HeaderFunc func() map[string]string
	// Flood is how many bytes of FloodOf are sent instead of a body; Length adds a
	// Content-Length. Server.Flooded counts the bytes that were received.
	Flood   int64
	FloodOf byte
	Length  bool
	// Forget is a query name that is removed from the request. Without its page token the first
	// page is answered again.
	Forget string
	// Other replaces Contains, a whole id, in the path: the API answers about another object
	// than the requested one.
	Other string
	// Edit changes the body of the route's own answer.
	Edit func(body []byte) []byte
	// Late calls the route first: the request has its effect, and only the answer is replaced or
	// lost.
	Late bool
	// Twice calls the route once more before, as a proxy does that repeats a request: the second answer is sent.
	Twice bool
	// Stale sends the route's first answer to the same address again, as a cache does.
	Stale bool

	seen int
	from int // number of calls when it was added
}

// Trouble is what happens to the connection.
type Trouble string

// The kinds of trouble. With Late, each comes after the route was called.
const (
	TroubleNone     Trouble = ""
	TroubleHang     Trouble = "hang"      // no header ever comes
	TroubleHangBody Trouble = "hang_body" // headers and half of the body, then nothing
	TroubleReset    Trouble = "reset"     // the connection closes without an answer, over TCP with RST
	TroubleTruncate Trouble = "truncate"  // headers promise more than comes
	TroubleHuge     Trouble = "huge"      // 50 MB of spaces before the answer, which is good JSON all the same
	TroubleDrip     Trouble = "drip"      // a byte now and then, for ever
)

// Status answers with a status and an empty JSON object.
func Status(status int) Fault { return Fault{Status: status, Body: "{}"} }

// TooMany is a 429 with headers.
func TooMany(header map[string]string) Fault {
	return Fault{Status: http.StatusTooManyRequests, Header: header, Body: `{"message":"slow down"}`}
}

// HTML is the page of a login portal.
func HTML() Fault {
	return Fault{Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/html"}, Body: "<!doctype html><title>Sign in</title>"}
}

// Garbage is invalid JSON.
func Garbage() Fault { return Fault{Status: http.StatusOK, Body: `{"items": [{"id": 7, "state"`} }

// Redirect points elsewhere.
func Redirect(to string) Fault {
	return Fault{Status: http.StatusFound, Header: map[string]string{"Location": to}}
}

// Break adds faults; the first one that matches a request and is not used up affects it.
func (s *Server) Break(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.from = len(s.calls)
		s.faults = append(s.faults, &f)
	}
}

// BreakRoutes breaks each of these routes in one way.
func (s *Server) BreakRoutes(f Fault, routes ...string) {
	for _, f.Route = range routes {
		s.Break(f)
	}
}

// Heal removes all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

func (s *Server) pickFault(route Route, req *http.Request) *Fault {
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

// serveFault answers instead of the route, or after it.
func (s *Server) serveFault(f *Fault, route Route, w http.ResponseWriter, req *http.Request) {
	if !s.waitFor(req, f.Delay) {
		return
	}
	answer := newRecordedAnswer()
	if f.Twice {
		route.Serve(newRecordedAnswer(), repeatable(req))
	}
	if f.Late || f.needsRoute() {
		route.Serve(answer, f.alterRequest(route, req))
	}
	if f.Stale {
		answer = s.firstAnswer(req, answer)
	}
	if f.Edit != nil {
		body := f.Edit(bytes.Clone(answer.body.Bytes()))
		answer.body.Reset()
		answer.body.Write(body)
	}
	if f.Status != 0 {
		answer = newRecordedAnswer()
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
	for _, name := range f.Without {
		answer.header.Del(name)
	}
	if f.HeaderFunc != nil {
		for name, value := range f.HeaderFunc() {
			answer.header.Set(name, value)
		}
	}
	if f.Flood > 0 {
		s.sendFlood(f, answer, w)
		return
	}
	s.sendBroken(f.Trouble, answer, w, req)
}

// repeatable is a copy of a request with a body of its own; that of req stays unread.
func repeatable(req *http.Request) *http.Request {
	body, _ := io.ReadAll(req.Body) // it is in memory
	req.Body = io.NopCloser(bytes.NewReader(body))
	second := req.Clone(req.Context())
	second.Body = io.NopCloser(bytes.NewReader(body))
	return second
}

// firstAnswer is the first answer that was sent to the address of a request, for which now is kept where there is none.
func (s *Server) firstAnswer(req *http.Request, now *recordedAnswer) *recordedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := req.Method + " " + req.URL.String()
	first, known := s.firsts[key]
	if !known {
		first = now
		s.firsts[key] = first
	}
	sent := newRecordedAnswer()
	sent.status, sent.header = first.status, first.header.Clone()
	sent.body.Write(first.body.Bytes())
	return sent
}

func (f *Fault) needsRoute() bool {
	return f.Status == 0 && f.Body == "" && f.Trouble != TroubleHang && f.Trouble != TroubleReset
}

func (f *Fault) alterRequest(route Route, req *http.Request) *http.Request {
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
		for name := range route.pathVariables() {
			if req.PathValue(name) == f.Contains {
				seen.SetPathValue(name, f.Other)
			}
		}
	}
	return seen
}

func (s *Server) sendBroken(trouble Trouble, answer *recordedAnswer, w http.ResponseWriter, req *http.Request) {
	switch trouble {
	case TroubleHang:
		s.WaitForEnd(req)
		panic(http.ErrAbortHandler)
	case TroubleReset:
		resetConnection(w)
	case TroubleHangBody, TroubleTruncate:
		answer.sendHalf(w)
		if trouble == TroubleHangBody {
			s.WaitForEnd(req)
		}
		panic(http.ErrAbortHandler)
	case TroubleHuge:
		answer.header.Del("Content-Length")
		answer.sendHeaders(w)
		spaces := bytes.Repeat([]byte(" "), 1<<20)
		for range 50 {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
		_, _ = w.Write(answer.body.Bytes())
	case TroubleDrip:
		answer.sendHeaders(w)
		for again := true; again; again = s.waitFor(req, time.Second) {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // a transport without it sends all at the end
		}
	default:
		answer.sendAll(w)
	}
}

// sendFlood sends bytes until the flood is complete or the client disconnects.
func (s *Server) sendFlood(f *Fault, answer *recordedAnswer, w http.ResponseWriter) {
	if f.Length {
		answer.header.Set("Content-Length", strconv.FormatInt(f.Flood, 10))
	}
	answer.sendHeaders(w)
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

// Flooded is how many bytes of one flood a client has received at most.
func (s *Server) Flooded() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flooded
}

// sendHalf sends the headers of more than there is, and half of the body.
func (m *recordedAnswer) sendHalf(w http.ResponseWriter) {
	body := m.body.Bytes()
	m.header.Set("Content-Length", strconv.Itoa(len(body)+64))
	m.sendHeaders(w)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush() // a transport without it sends all at the end
}

// resetConnection closes the connection, over TCP with RST.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// WaitForEnd waits until the client disconnects or the test ends.
func (s *Server) WaitForEnd(req *http.Request) {
	select {
	case <-req.Context().Done():
	case <-s.ended:
	}
}
