package hostfile_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sbx/internal/hostfile"
)

// TestLinesEndWhereverTheContextEnds: also while a line is being taken, when the reader
// sees it first and has no end to tell.
func TestLinesEndWhereverTheContextEnds(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err := hostfile.Lines(ctx, strings.NewReader(strings.Repeat("line\n", 10)), func(string) error {
				cancel()
				synctest.Wait() // the reader sees the end before this line is taken
				return nil
			})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// TestAByteOrderMarkIsNoPartOfALine, in front of the first one.
func TestAByteOrderMarkIsNoPartOfALine(t *testing.T) {
	t.Parallel()
	var got []string
	require.NoError(t, hostfile.Lines(t.Context(), strings.NewReader("\ufeffprod/a\n\ufeffb\n"), func(line string) error { got = append(got, line); return nil }))
	require.Equal(t, []string{"prod/a", "\ufeffb"}, got)
}
