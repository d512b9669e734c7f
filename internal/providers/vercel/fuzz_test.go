package vercel

import (
	"strings"
	"testing"
)

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"command":{"id":"c","exitCode":null}}` + "\n" + `{"stream":"stdout","data":"x"}`, `{"stream":"error","data":{"code":"a"}}`, `{"stream":"stdout","data":7}`, "[]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		err := lines(strings.NewReader(text), func(l wireLine) error {
			n++
			_, _ = l.text()
			return nil
		})
		if err == nil && n > strings.Count(text, "\n")+1 {
			t.Fatalf("%d lines of %q", n, text)
		}
	})
}
