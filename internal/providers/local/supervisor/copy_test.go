//go:build unix

package supervisor

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local/runlog"

	"sbx/internal/testkit/tiertest"
)

// copying is a supervisor that copies two pipes into a folder; it gives their writing
// ends.
func copying(t *testing.T, dir string) (*supervisor, [2]*os.File) {
	t.Helper()
	s := &supervisor{now: time.Now, output: runlog.NewWriter(dir, 1<<20)}
	var in, out [2]*os.File
	for i := range in {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { w.Close() })
		in[i], out[i] = r, w
	}
	s.copyOutput(in[0], in[1])
	return s, out
}

func TestProgramsEndStoresWhatWasWrittenWhileTheWriterLivesOn(t *testing.T) {
	t.Parallel()
	for range 50 {
		dir := t.TempDir()
		s, out := copying(t, dir)
		text := strings.Repeat("x", 50_000) // fits into the pipe: it may all be there still
		_, err := out[0].WriteString(text)
		require.NoError(t, err)
		_, err = out[1].WriteString("err")
		require.NoError(t, err)
		s.programEnded()
		stored := map[string]string{}
		for l, err := range runlog.Read(t.Context(), dir, runlog.Query{}) {
			require.NoError(t, err)
			stored[l.Stream] = l.Text
			assert.False(t, l.Truncated, "the writer has ended its line")
		}
		require.Equal(t, map[string]string{"stdout": text, "stderr": "err"}, stored)
		_, err = out[0].WriteString("more\n")
		require.NoError(t, err)
		require.NoError(t, out[0].Close())
		require.NoError(t, out[1].Close())
		<-s.copyDone // what comes after a drain is copied as before
		assert.Zero(t, s.output.Dropped())
	}
}

// TestAWriteDefersNoFlush: an unfinished line is stored however often it is written to.
func TestAWriteDefersNoFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, flushed := time.Now(), time.Duration(0)
		d := newDelayedFlush(func() { flushed = time.Since(began) })
		step := time.NewTicker(flushAfter / 10)
		defer step.Stop()
		for range 12 {
			d.noteWrite()
			<-step.C
		}
		d.timer.Stop()
		synctest.Wait()
		assert.Equal(t, flushAfter, flushed)
	})
}

func TestDrainOfEndedPipesReturns(t *testing.T) {
	t.Parallel()
	s, out := copying(t, t.TempDir())
	require.NoError(t, out[0].Close())
	require.NoError(t, out[1].Close())
	began := time.Now()
	s.drainOutput()
	if tiertest.IsLong("that output is drained before its limit of two seconds") {
		assert.Less(t, time.Since(began), drainLimit)
	}
	<-s.copyDone
}

// Nothing that is left behind can keep a program's end from being recorded.
func TestDrainOfAnEndlessWriterReturns(t *testing.T) {
	t.Parallel()
	s, out := copying(t, t.TempDir())
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		flood := []byte(strings.Repeat("flood\n", 1000))
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = out[0].Write(flood)
			}
		}
	}()
	began := time.Now()
	s.drainOutput()
	if tiertest.IsLong("that output is drained before its limit of two seconds") {
		assert.Less(t, time.Since(began), drainLimit)
	}
	close(stop)
	<-done
	require.NoError(t, out[0].Close())
	require.NoError(t, out[1].Close())
	<-s.copyDone
}
