//go:build unix

package local_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cron job that holds a lock on descriptor 9 releases it when the job ends, not when the
// sandbox does.
func TestASandboxKeepsNothingOpenOfWhoeverStartsIt(t *testing.T) {
	t.Parallel()
	var ends [2]int
	require.NoError(t, syscall.Pipe(ends[:])) // as a shell passes it on: not closed on exec
	require.NoError(t, syscall.SetNonblock(ends[0], true))
	reader, writer := os.NewFile(uintptr(ends[0]), "reader"), os.NewFile(uintptr(ends[1]), "writer")
	defer reader.Close()
	b := newBench(t)
	s := b.sh(t, "ls /proc/self/fd; echo up; sleep 600")
	b.waitFor(t, s.ID, "up")
	require.NoError(t, writer.Close())
	require.NoError(t, reader.SetReadDeadline(time.Now().Add(5*time.Second)))
	n, err := reader.Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorContains(t, err, "EOF", "somebody still holds the other end")
}
