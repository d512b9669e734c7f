package identity

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// statusText is the part of /proc/PID/status that matters, with its neighbours.
func statusText(inner, blocked, ignored, caught string) string {
	return "Name:\tcat\nSigQ:\t0/96365\nNSpid:\t" + inner + "\nSigPnd:\t0000000000000000\nSigBlk:\t" + blocked +
		"\nSigIgn:\t" + ignored + "\nSigCgt:\t" + caught + "\nCapInh:\t0000000000000000\n"
}

const (
	noSignal   = "0000000000000000"
	termAlone  = "0000000000004000"
	allButTerm = "ffffffffffffbfff"
)

func TestDispositions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text    string
		ignores bool
	}{
		"default":              {statusText("42", noSignal, noSignal, noSignal), false},
		"ignored":              {statusText("42", noSignal, termAlone, noSignal), true},
		"everything else":      {statusText("42", allButTerm, allButTerm, allButTerm), false},
		"blocked":              {statusText("42", termAlone, noSignal, noSignal), false},
		"caught":               {statusText("42", noSignal, noSignal, termAlone), false},
		"init of a namespace":  {statusText("42\t1", noSignal, noSignal, noSignal), true},
		"init with a handler":  {statusText("42\t1", noSignal, noSignal, termAlone), false},
		"second of its kind":   {statusText("42\t2", noSignal, noSignal, noSignal), false},
		"number like an init":  {statusText("1\t7", noSignal, noSignal, noSignal), false},
		"garbage":              {"SigIgn:\tzz\nNSpid\nSigBlk\n:\n", false},
		"nothing":              {"", false},
		"a name like a signal": {"Name:\tSigIgn: 0000000000004000\n" + statusText("42", noSignal, noSignal, noSignal), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d dispositions
			for line := range strings.Lines(tc.text) {
				d.parseLine([]byte(line))
			}
			assert.Equal(t, tc.ignores, d.ignoresTerm())
		})
	}
}

// FuzzDispositions feeds anything: no panic, and only a line that names a
// signal set changes something.
func FuzzDispositions(f *testing.F) {
	f.Add([]byte("SigIgn:\t0000000000004000\n"))
	f.Add([]byte("NSpid:\t42\t1\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		var d dispositions
		d.parseLine(line)
		if d != (dispositions{}) {
			assert.Regexp(t, `^(Sig(Ign|Cgt)|NSpid):`, string(line))
		}
	})
}
