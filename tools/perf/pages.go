package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

const (
	pageRows = 100    // rows of a page at most, as E2B's API has it
	mostRows = 10_000 // rows that are rendered
	hangs    = "hang" // instead of a number of rows: accepts, and never answers
)

// library serves E2B's list from pages that were rendered before, so that the
// server is not what is measured. The first part of the path says how many rows
// there are: /500/v2/sandboxes.
type library struct{ pages [][]byte }

// newLibrary renders the pages: running sandboxes, one started a second before
// the other.
func newLibrary(now time.Time) (library, error) {
	var l library
	for first := 0; first < mostRows; first += pageRows {
		page := make([]map[string]any, pageRows)
		for i := range page {
			page[i] = shelved(first+i, now)
		}
		raw, err := json.Marshal(page)
		if err != nil {
			return l, err
		}
		l.pages = append(l.pages, raw)
	}
	return l, nil
}

// shelved is a row as E2B's API writes it (ListedSandbox of its OpenAPI file).
func shelved(n int, now time.Time) map[string]any {
	return map[string]any{
		"templateID": "rki5dems9wqfm4r03t7g", "alias": "base", "sandboxID": fmt.Sprintf("i%020x", n), "clientID": "6532622b",
		"startedAt": now.Add(-time.Duration(n) * time.Second).UTC(), "endAt": now.Add(time.Hour).UTC(), "state": "running",
		"cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "envdVersion": "0.4.1",
		"metadata": map[string]string{"sbx/task": fmt.Sprintf("t-%08x", n), "sbx/agent-type": "implementation", "team": "agents"},
	}
}

func (l library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	how, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if how == hangs {
		<-r.Context().Done()
		return
	}
	rows, err := strconv.Atoi(how)
	if err != nil || rows%pageRows != 0 || rows <= 0 || rows > mostRows || path != "v2/sandboxes" {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	n, err := strconv.Atoi("0" + query.Get("nextToken"))
	if err != nil || n >= rows/pageRows || query.Get("limit") != strconv.Itoa(pageRows) {
		http.Error(w, `{"code":400,"message":"no such page"}`, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Total-Running", how)
	if n+1 < rows/pageRows {
		w.Header().Set("X-Next-Token", strconv.Itoa(n+1))
	}
	_, _ = w.Write(l.pages[n]) // a client that has gone wants no page
}

// serve answers at a loopback address, which it prints, until its input ends.
func serve() error {
	l, err := newLibrary(time.Now())
	if err != nil {
		return err
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + at.Addr().String())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // it ends when the parent does
		_ = at.Close()
	}()
	if err := http.Serve(at, l); err != nil && !strings.Contains(err.Error(), "closed") {
		return err
	}
	return nil
}

// shelf starts the page server. It gives its address and what ends it.
func shelf() (string, func(), error) { return serving(serveWord) }

// serving starts this program again as a server, so that its processor time and
// its memory are nobody else's. It gives the address and what ends the server.
func serving(word string) (string, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, word)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end := func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		end()
		return "", nil, fmt.Errorf("%s gives no address: %w", word, err)
	}
	return address, end, nil
}
