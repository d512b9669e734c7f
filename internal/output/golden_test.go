package output

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func boxSpec() ListSpec[box] {
	return ListSpec[box]{Schema: "sbx.ls/v1", Columns: boxColumns(), Empty: "no sandboxes; start one with sbx create"}
}

func down() error {
	return &fault.Error{
		Kind: fault.KindUnavailable, Provider: "daytona", Op: "list", RetryAfter: 2 * time.Second,
		Hint: "try again later", Err: errors.New("503 Service Unavailable"),
	}
}

// scene is one of the four cases that every format has to get through.
type scene struct {
	items []box
	errs  []error
}

func scenes() map[string]scene {
	return map[string]scene{
		"normal":  {items: boxes()},
		"empty":   {},
		"partial": {items: boxes()[:1], errs: []error{down()}},
		"failing": {errs: []error{down()}},
	}
}

func play(t *testing.T, s *stage, p *Printer, sc scene) (int, string) {
	t.Helper()
	l, err := NewList(p, boxSpec())
	require.NoError(t, err)
	for _, b := range sc.items {
		require.NoError(t, l.Add(b))
	}
	for _, err := range sc.errs {
		l.Fail(err)
	}
	l.Set(struct{ Total Fields }{Fields{{"active", 1}}})
	code := fault.ExitCode(l.Close())
	return code, fmt.Sprintf("--- stdout\n%s--- stderr\n%s--- exit %d\n", s.out.String(), s.err.String(), code)
}

func TestEveryFormatInEveryPlace(t *testing.T) {
	t.Parallel()
	places := map[string]place{
		"tty80":   {width: 80},
		"tty40":   {width: 40},
		"pipe":    {},
		"nocolor": {width: 80, env: []string{"NO_COLOR=1"}},
	}
	formats := []string{
		"table", "wide", "csv", "json", "ndjson", "yaml", "name",
		`template={{range .items}}{{.ref}} {{.note}}{{"\n"}}{{end}}`,
		`jq=.items[] | .ref, .labels`,
	}
	for placeName, at := range places {
		for _, format := range formats {
			word, _, _ := strings.Cut(format, "=")
			t.Run(placeName+"/"+word, func(t *testing.T) {
				t.Parallel()
				var all strings.Builder
				for _, name := range []string{"normal", "empty", "partial", "failing"} {
					s := newStage(at)
					_, text := play(t, s, s.printer(t, format), scenes()[name])
					fmt.Fprintf(&all, "=== %s\n%s", name, text)
				}
				golden(t, "list-"+placeName+"-"+word, strings.ReplaceAll(all.String(), "\x1b", "<ESC>"))
			})
		}
	}
}

func TestExitCodesOfTheScenes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"normal": 0, "empty": 0, "partial": 3, "failing": 7} {
		for _, format := range []string{"table", "json", "ndjson", "yaml", "csv", "name"} {
			s := newStage(place{})
			code, _ := play(t, s, s.printer(t, format), scenes()[name])
			assert.Equal(t, want, code, "%s as %s", name, format)
		}
	}
}
