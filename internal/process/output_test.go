package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
)

func helper(script string) (process.Process, []string, *strings.Builder) {
	var said strings.Builder
	p := process.Process{Environ: []string{"PATH=/usr/bin:/bin", "WORD=kept"}, Stderr: process.Stream{Writer: &said}}
	return p, []string{"-c", script}, &said
}

func TestOutput(t *testing.T) {
	t.Parallel()
	p, args, said := helper(`echo "$WORD $HOME"; echo ask >&2; cat`)
	text, err := p.Output(t.Context(), "sh", args...)
	require.NoError(t, err)
	assert.Equal(t, "kept \n", text, "its environment is that of the process, and it has nothing to read")
	assert.Equal(t, "ask\n", said.String())

	_, err = p.Output(t.Context(), "no-such-program-7f3a")
	require.Error(t, err)
	_, err = p.Output(t.Context(), "sh", "-c", "exit 3")
	require.ErrorContains(t, err, "exit status 3")
	_, err = p.Output(t.Context(), "sh", "-c", "yes | head -c 100000")
	require.ErrorContains(t, err, "larger than 64 KiB")
}

func TestOutputEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	p, args, _ := helper("sleep 600 & sleep 600")
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, why)
	defer cancel()
	_, err := p.Output(ctx, "sh", args...)
	assert.ErrorIs(t, err, why)
}

func TestCapture(t *testing.T) {
	t.Parallel()
	p, _, terminal := helper("")
	for name, tc := range map[string]struct{ script, out, said, fails string }{
		"both outputs, no input":     {`echo "$WORD $MORE"; echo why >&2; cat`, "kept too\n", "why\n", ""},
		"an exit":                    {"echo out; echo why >&2; exit 3", "out\n", "why\n", "exit status 3"},
		"too much":                   {"yes | head -c 100000", "", "", "larger than 64 KiB"},
		"too much on stderr":         {"yes | head -c 100000 >&2", "", "", ""},
		"what it started has a pipe": {"echo out; sleep 5 &", "out\n", "", ""},
	} {
		out, said, err := p.Capture(t.Context(), []string{"MORE=too"}, "sh", "-c", tc.script)
		if tc.fails == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, tc.fails, name)
		}
		assert.Equal(t, tc.out, out, name)
		if name != "too much on stderr" {
			assert.Equal(t, tc.said, said, name)
		}
		assert.LessOrEqual(t, len(said), 64<<10, name)
	}
	assert.Empty(t, terminal.String(), "nothing of it reaches the terminal")
}
