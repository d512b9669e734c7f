package wiretest

import (
	"bytes"
	"maps"
	"net/http"
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
		f.seen++
		if f.seen <= f.After || (f.Times > 0 && f.seen > f.After+f.Times) {
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
	answer := &memory{header: http.Header{}, status: http.StatusOK}
	if f.Late || f.asks() {
		route.Serve(answer, req)
	}
	if f.Status != 0 {
		answer = &memory{header: http.Header{"Content-Type": {"application/json"}}, status: f.Status}
	}
	if f.Body != "" || f.Status != 0 {
		answer.body.Reset()
		answer.body.WriteString(f.Body)
	}
	for name, value := range f.Header {
		answer.header.Set(name, value)
	}
	s.break1(f.Trouble, answer, w, req)
}

// asks says that the answer of the route itself is needed.
func (f *Fault) asks() bool {
	return f.Status == 0 && f.Body == "" && f.Trouble != TroubleHang && f.Trouble != TroubleReset && f.Trouble != TroubleHuge
}

// break1 sends an answer through a connection that has this trouble.
func (s *Server) break1(trouble Trouble, answer *memory, w http.ResponseWriter, req *http.Request) {
	body := answer.body.Bytes()
	switch trouble {
	case TroubleHang:
		s.hang(req)
		panic(http.ErrAbortHandler)
	case TroubleReset:
		panic(http.ErrAbortHandler)
	case TroubleHangBody, TroubleTruncate:
		answer.header.Set("Content-Length", strconv.Itoa(len(body)+64))
		answer.head(w)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush() // a transport without it sends all at the end
		if trouble == TroubleHangBody {
			s.hang(req)
		}
		panic(http.ErrAbortHandler)
	case TroubleHuge:
		answer.head(w)
		_, _ = w.Write([]byte(`{"padding":"`))
		for range 50 {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
				return
			}
		}
	case TroubleDrip:
		answer.head(w)
		for {
			_, err := w.Write([]byte(" "))
			_ = http.NewResponseController(w).Flush() // as above
			if err != nil || !s.pause(req, time.Second) {
				return
			}
		}
	default:
		answer.head(w)
		_, _ = w.Write(body)
	}
}

// hang waits until the client leaves or the test ends.
func (s *Server) hang(req *http.Request) {
	select {
	case <-req.Context().Done():
	case <-s.ended:
	}
}

// memory is an answer that is kept.
type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
	sent   bool
}

func (m *memory) Header() http.Header { return m.header }

func (m *memory) WriteHeader(status int) {
	if !m.sent {
		m.status, m.sent = status, true
	}
}

func (m *memory) Write(b []byte) (int, error) {
	m.sent = true
	return m.body.Write(b)
}

// head sends status and headers.
func (m *memory) head(w http.ResponseWriter) {
	maps.Copy(w.Header(), m.header)
	w.WriteHeader(m.status)
}

// The bad answers that every API gives one day.

// Status answers with a status and an empty JSON object.
func Status(status int) Fault { return Fault{Status: status, Body: "{}"} }

// TooMany is a 429 with headers.
func TooMany(header map[string]string) Fault {
	return Fault{Status: http.StatusTooManyRequests, Header: header, Body: `{"message":"slow down"}`}
}

// HTML is a page of somebody's portal.
func HTML() Fault {
	return Fault{Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/html"}, Body: "<!doctype html><title>Sign in</title>"}
}

// Garbage is JSON that is none.
func Garbage() Fault { return Fault{Status: http.StatusOK, Body: `{"items": [{"id": 7, "state"`} }

// Redirect points elsewhere.
func Redirect(to string) Fault {
	return Fault{Status: http.StatusFound, Header: map[string]string{"Location": to}}
}

// Dashboard answers with a web page, as a service does at an address that is not
// its API's.
func Dashboard(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<!doctype html><title>Dashboard</title>"))
}
