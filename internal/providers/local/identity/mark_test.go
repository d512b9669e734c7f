package identity

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEntryMatcher(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		environ string
		want    bool
	}{
		"first":          {"SBX=a1\x00B=2\x00", true},
		"last":           {"B=2\x00SBX=a1\x00", true},
		"last, no NUL":   {"B=2\x00SBX=a1", true},
		"empty":          {"", false},
		"longer value":   {"SBX=a12\x00", false},
		"shorter value":  {"SBX=a\x00", false},
		"longer key":     {"XSBX=a1\x00", false},
		"inside another": {"B=SBX=a1\x00", false},
		"line end":       {"B=2\nSBX=a1\x00", false},
		"after a prefix": {"SBX=a\x00SBX=a1\x00", true},
		"other case":     {"sbx=a1\x00", false},
		"empty entries":  {"\x00\x00SBX=a1\x00\x00", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(tc.environ)+1; size++ {
				m := entryMatcher{want: "SBX=a1"}
				for rest := tc.environ; rest != ""; {
					n := min(size, len(rest))
					m.matchPiece([]byte(rest[:n]))
					rest = rest[n:]
				}
				m.endEntry()
				assert.Equal(t, tc.want, m.found, "in pieces of %d", size)
			}
		})
	}
}

// FuzzEntryMatcher compares with splitting the whole, wherever it is cut.
func FuzzEntryMatcher(f *testing.F) {
	f.Add("A=1\x00B=2\x00", "B=2", 3)
	f.Add("", "A=", 0)
	f.Fuzz(func(t *testing.T, environ, want string, cut int) {
		if want == "" || strings.Contains(want, "\x00") {
			t.Skip("Marked refuses it")
		}
		cut = min(max(cut, 0), len(environ))
		m := entryMatcher{want: want}
		m.matchPiece([]byte(environ[:cut]))
		m.matchPiece([]byte(environ[cut:]))
		m.endEntry()
		plain := false
		for entry := range strings.SplitSeq(environ, "\x00") {
			plain = plain || entry == want
		}
		assert.Equal(t, plain, m.found)
	})
}

// procargs is an answer to kern.procargs2.
func procargs(argc uint32, tail string) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, argc), tail...)
}

func TestProcargsHave(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer []byte
		want   bool
	}{
		"in the environment": {procargs(2, "/bin/sh\x00\x00\x00\x00sh\x00-c\x00A=1\x00SBX=a1\x00"), true},
		"an argument":        {procargs(2, "/bin/sh\x00\x00sh\x00SBX=a1\x00A=1\x00"), false},
		"no arguments":       {procargs(0, "/bin/sh\x00SBX=a1\x00"), true},
		"the path":           {procargs(0, "SBX=a1\x00\x00A=1\x00"), false},
		"too many arguments": {procargs(1<<31, "/bin/sh\x00\x00SBX=a1\x00"), false},
		"torn":               {[]byte{1, 0}, false},
		"empty":              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, procargsHave(tc.answer, "SBX=a1"))
		})
	}
}

// FuzzProcargs feeds anything: no panic, no endless loop, and nothing is found
// that is not there.
func FuzzProcargs(f *testing.F) {
	f.Add(procargs(1, "/bin/sh\x00\x00sh\x00A=1\x00"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, answer []byte) {
		if procargsHave(answer, "A=1") {
			assert.Contains(t, string(answer), "A=1")
		}
	})
}
