//go:build unix

package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// hook listens on loopback as notification services do: $HOOK is its address, and each request
// becomes a line of FILE, its path before its body: hook FILE.
func hook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hook FILE")
	}
	file, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		_, _ = file.WriteString(r.URL.Path + " " + string(bytes.ReplaceAll(body, []byte("\n"), []byte(" "))) + "\n")
		w.WriteHeader(http.StatusAccepted)
	}))
	ts.Defer(func() {
		server.Close()
		_ = file.Close() // it was written by its own calls
	})
	ts.Setenv("HOOK", server.URL)
}
