package main

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"
)

func TestScreen(t *testing.T) {
	t.Parallel()
	s, err := openScreen(exec.Command("sh", "-c", `stty size; echo "$TERM"; read key; echo "typed: $key"`))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.watch(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"40 140", "xterm-256color"} {
		if took, err := s.await(text); err != nil || took <= 0 {
			t.Fatal(took, err)
		}
	}
	if _, err := s.tty.WriteString("p\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.await("typed: p"); err != nil {
		t.Fatal(err)
	}
	if s.written < 30 {
		t.Errorf("%v bytes", s.written)
	}
	if _, err := s.await("40 140"); err == nil {
		t.Error("what was awaited before was found again")
	}
	if err := s.watch(time.Hour); err == nil {
		t.Error("a program that has ended was watched")
	}
}

// TestRounds counts pages, of a world that goes on.
func TestRounds(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(worldServer())
	defer server.Close()
	f := fleet{age: time.Hour}
	at, err := f.open(server.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	for page := range 3 {
		if got := rounds(server.URL, at); got != float64(page)/100 {
			t.Errorf("%v rounds after %d pages", got, page)
		}
		if _, err := ask(http.MethodGet, "http://"+at+"/v2/sandboxes?limit=100"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(http.MethodDelete, server.URL+"/"+at); err != nil {
		t.Error(err)
	}
	if got := rounds(server.URL, at); got != 0 {
		t.Errorf("%v rounds of a world that has ended", got)
	}
}
