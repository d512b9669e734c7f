package vercel

import (
	"encoding/json"
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

// TestLongLines: a chunk of output may be longer than 8 MiB, and comes in parts, so that memory is bounded; a line
// that is none and longer than the buffer is no lost connection.
func TestLongLines(t *testing.T) {
	t.Parallel()
	letters := []string{"x", `\"`, `\\`, `\n`, `\u00e9`, `\ud83d\ude00`, "é", "😀", `\ud800`, `\ud800x`, strings.Repeat("y", 70_001)}
	var data, all strings.Builder
	for i := 0; data.Len() < 9<<20; i++ {
		data.WriteString(letters[(i*i+i/7)%len(letters)])
	}
	var want string
	require.NoError(t, json.Unmarshal([]byte(`"`+data.String()+`"`), &want))
	longest, parts := 0, map[string]int{}
	text := `{"stream":"stdout","data":"` + data.String() + `", "more": 1}` + "\n" + `{"stream":"stderr","data":"last"}`
	err := readNDJSON(iotest.HalfReader(strings.NewReader(text)), func(l wireLine) error {
		text, ok := l.outputText()
		require.True(t, ok)
		longest = max(longest, len(text))
		parts[l.Stream]++
		all.WriteString(text)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, want+"last", all.String())
	require.Greater(t, parts["stdout"], 5)
	require.Equal(t, 1, parts["stderr"])
	require.Less(t, longest, 2*partSize)
	require.ErrorIs(t, readNDJSON(endless{}, func(wireLine) error { return nil }), errLong)
	require.ErrorIs(t, readNDJSON(strings.NewReader(`{"stream":"stdout","data":"`+strings.Repeat("x", 2*partSize)+"\n"), func(wireLine) error { return nil }), errStream)
	left := errors.New("the caller has left")
	require.ErrorIs(t, readNDJSON(io.MultiReader(strings.NewReader(`{"stream":"stdout","data":"`+strings.Repeat("x", 2*partSize)), iotest.ErrReader(left)), func(wireLine) error { return nil }), left)
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}
