//go:build unix

package local_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestHello(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "echo hello; echo $$; ps ax 2>/dev/null | head; cat /proc/self/cgroup; exit 3")
	e := b.ended(t, s.ID)
	require.Equal(t, sandbox.StateFailed, e.State)
	t.Log(b.output(t, s.ID))
	require.Contains(t, b.output(t, s.ID), "hello\n")
}
