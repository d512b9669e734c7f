package wiretest

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
)

// JSON answers with a value. It panics, and thereby fails the test, for a value
// that has no JSON.
func JSON(w http.ResponseWriter, status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// Decode reads a request's JSON body; what cannot be read stays zero.
func Decode(r *http.Request, into any) {
	_ = json.NewDecoder(r.Body).Decode(into)
}

// Dashboard answers with a web page, as a service does at an address that is not
// its API's.
func Dashboard(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html")
	_, _ = w.Write([]byte("<!doctype html><title>Dashboard</title>"))
}

// memory is an answer that is kept.
type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
	sent   bool
}

func newMemory() *memory { return &memory{header: http.Header{}, status: http.StatusOK} }

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

// send sends all of it.
func (m *memory) send(w http.ResponseWriter) {
	m.head(w)
	_, _ = w.Write(m.body.Bytes())
}
