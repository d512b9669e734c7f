package vercel

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"command":{"id":"c","exitCode":null}}` + "\n" + `{"stream":"stdout","data":"x"}`, `{"stream":"error","data":{"code":"a"}}`, `{"stream":"stdout","data":7}`, "[]", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		err := readNDJSON(strings.NewReader(text), func(l wireLine) error {
			n++
			_, _ = l.outputText()
			return nil
		})
		if err == nil && n > strings.Count(text, "\n")+1 {
			t.Fatalf("%d lines of %q", n, text)
		}
	})
}

// TestALostLineTellsWhy: the error of a cut line is the reason of the cut.
func TestALostLineTellsWhy(t *testing.T) {
	t.Parallel()
	left := errors.New("the caller has left")
	for _, text := range []string{"", `{"stream":"std`, `{"stream":"stdout","data":"x"}` + "\n", `{"stream":"stdout","data":"x"}` + "\n{"} {
		err := readNDJSON(io.MultiReader(strings.NewReader(text), iotest.ErrReader(left)), func(wireLine) error { return nil })
		require.ErrorIs(t, err, left, "after %q", text)
	}
	require.ErrorIs(t, readNDJSON(strings.NewReader("{"), nil), errStream)
}

// TestLongLines: a chunk of output may be longer than 8 MiB; one that is longer than the buffer is
// no lost connection.
func TestLongLines(t *testing.T) {
	t.Parallel()
	chunk := strings.Repeat("x", 9<<20)
	err := readNDJSON(strings.NewReader(`{"stream":"stdout","data":"`+chunk+`"}`), func(l wireLine) error {
		text, ok := l.outputText()
		require.True(t, ok)
		require.Len(t, text, len(chunk))
		return nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, readNDJSON(endless{}, func(wireLine) error { return nil }), errLong)
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
