package e2b_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
)

// TestLooksSurviveALossyEdge: the edge loses a few of a hundred streams. Reads of sbx are repeated;
// lost output of a user's command is an error.
func TestLooksSurviveALossyEdge(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{})
	c, ok := open(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	f.Change(func(o *e2btest.Options) { o.LosesEvery = 2 })
	script := "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done"
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", script}})
	require.NoError(t, err, "the start of the program")

	followed := lines(t, c, made.ID, providers.LogQuery{Follow: true})
	var want []string
	for i := range 6 {
		want = append(want, fmt.Sprintf("line %d", i+1))
	}
	assert.Equal(t, want, followed, "following goes on from its place")
	for range 4 {
		assert.Equal(t, want, lines(t, c, made.ID, providers.LogQuery{}))
		exit, err := c.Exit(t.Context(), made.ID)
		require.NoError(t, err)
		require.NotNil(t, exit.Code)
		assert.Zero(t, *exit.Code)
	}
}

func lines(t *testing.T, c *e2b.Client, id string, q providers.LogQuery) []string {
	t.Helper()
	var all []string
	for l, err := range c.Logs(t.Context(), id, q) {
		require.NoError(t, err)
		all = append(all, l.Text)
	}
	return all
}

// TestLostOutputIsAnError: a command with lost output is an error, with any exit code.
func TestLostOutputIsAnError(t *testing.T) {
	t.Parallel()
	f := e2btest.New(t, e2btest.Options{LosesEvery: 2})
	c, ok := open(t, f, e2b.Type()).(*e2b.Client)
	require.True(t, ok)
	id := f.Add(e2btest.Seed{})
	whole, failed := strings.Repeat("words\n", 100), 0
	for range 12 {
		var out, stderr bytes.Buffer
		exit, err := c.Exec(t.Context(), id, providers.Command{
			Args: []string{"sh", "-c", "i=0; while [ $i -lt 100 ]; do echo words; i=$((i+1)); done"}, Stdout: &out, Stderr: &stderr,
		})
		if err != nil {
			failed++
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
			continue
		}
		require.NotNil(t, exit.Code)
		assert.Zero(t, *exit.Code)
		assert.Equal(t, whole, out.String(), "exit 0 with a part of the output")
	}
	assert.NotZero(t, failed, "no stream was lost")
}
