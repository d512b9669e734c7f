package runlog

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// TestAFollowerReportsWhatAnOpenLineHasGrownBy writes parts of a line. Each is reported once and only on
// request, and the whole line follows its end.
func TestAFollowerReportsWhatAnOpenLineHasGrownBy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	for _, open := range []bool{true, false} {
		dir, done := t.TempDir(), make(chan struct{})
		w := NewWriter(dir, MinCapBytes)
		write := func(text string) {
			_, err := w.Stream(Stdout).Write([]byte(text))
			require.NoError(t, err)
			w.Flush()
		}
		var got []sandbox.LogLine
		write("one\n1 of 2")
		for l, err := range Read(ctx, dir, Query{Follow: true, Open: open, Done: done}) {
			require.NoError(t, err)
			got = append(got, sandbox.LogLine{Stream: l.Stream, Text: l.Text, OpenBytes: l.OpenBytes})
			switch {
			case l.Text == "1 of 2" || !open && l.Text == "one":
				write("\r2 of 2")
				if !open {
					write(" done\n")
					close(done)
				}
			case l.Text == "\r2 of 2":
				write(" done\n")
				close(done)
			}
		}
		whole := sandbox.LogLine{Stream: "stdout", Text: "1 of 2\r2 of 2 done"}
		want := []sandbox.LogLine{{Stream: "stdout", Text: "one"}, whole}
		if open {
			want = []sandbox.LogLine{want[0], {Stream: "stdout", Text: "1 of 2", OpenBytes: 6}, {Stream: "stdout", Text: "\r2 of 2", OpenBytes: 13}, whole}
		}
		assert.Equal(t, want, got, "open: %v", open)
	}
}
