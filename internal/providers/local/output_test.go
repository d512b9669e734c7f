//go:build unix

package local_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

func TestOutputStaysWithinItsCapAndTheNewestSurvives(t *testing.T) {
	t.Parallel()
	b := newBenchAt(t, t.TempDir(), map[string]string{"output": "1M"})
	s := b.sh(t, `yes 0123456789012345678901234567890123456789 | head -c 100000000; echo; echo the last line`)
	b.ended(t, s.ID)
	var size int64
	files, err := filepath.Glob(filepath.Join(b.store().Dir(s.ID), "output.log*"))
	require.NoError(t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		size += info.Size()
	}
	require.LessOrEqual(t, size, int64(1<<20))
	require.True(t, strings.HasSuffix(b.output(t, s.ID), "the last line"))
	lines, missing := 0, int64(0)
	for l, err := range b.Logs(t.Context(), s.ID, providers.LogQuery{}) {
		require.NoError(t, err)
		if l.Gap != nil {
			missing += *l.Gap.Lines
		} else {
			lines++
		}
	}
	require.EqualValues(t, 100_000_000/41+2, int64(lines)+missing, "each line is given or told to be missing")
}

func TestHugeAndBinaryLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `head -c 10000000 /dev/zero | tr '\0' x; echo; head -c 4096 /dev/urandom; echo; echo end`)
	b.ended(t, s.ID)
	var lines []sandbox.LogLine
	for l, err := range b.Logs(t.Context(), s.ID, providers.LogQuery{}) {
		require.NoError(t, err)
		lines = append(lines, l)
	}
	require.True(t, lines[0].Truncated)
	require.Less(t, len(lines[0].Text), 1<<20)
	require.Equal(t, "end", lines[len(lines)-1].Text)
}

func TestFollowEndsWithTheSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `for i in 1 2 3; do echo line $i; sleep 0.05; done`)
	var got []string
	for l, err := range b.Logs(t.Context(), s.ID, providers.LogQuery{Follow: true}) {
		require.NoError(t, err)
		got = append(got, l.Text)
	}
	require.Equal(t, []string{"line 1", "line 2", "line 3"}, got)
}

func TestExecRunsInsideTheSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, Env: []string{"GREETING=hello"}})
	var out, errs bytes.Buffer
	e, err := b.Exec(t.Context(), s.ID, providers.Command{
		Args: []string{"sh", "-c", `cat; echo "$GREETING $MORE"; echo oops >&2; exit 7`}, Env: []string{"MORE=world"},
		Stdin: strings.NewReader("from stdin\n"), Stdout: &out, Stderr: &errs,
	})
	require.NoError(t, err)
	require.Equal(t, 7, *e.Code)
	require.Equal(t, "from stdin\nhello world\n", out.String())
	require.Equal(t, "oops\n", errs.String())
}

// TestExecSurvivesGarbageCollection: 300 commands make the stub collect its garbage, and the
// command socket must not be part of it.
func TestExecSurvivesGarbageCollection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	for i := range 300 {
		_, err := b.Exec(t.Context(), s.ID, providers.Command{Args: []string{"true"}})
		require.NoError(t, err, "command %d", i+1)
	}
}

func TestExecSharesTheLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{"sleep", "600"}, MemoryBytes: 64 * sandbox.MiB})
	needHard(t, s)
	e, err := b.Exec(t.Context(), s.ID, providers.Command{Args: hogCommand()})
	require.NoError(t, err)
	require.Equal(t, "SIGKILL", e.Signal)
	u, err := b.Usage(t.Context(), s.ID)
	require.NoError(t, err)
	require.Positive(t, *u.OOMKills)
}

func TestExecAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	_, err := b.Exec(t.Context(), s.ID, providers.Command{Args: []string{"true"}})
	require.Equal(t, fault.KindGone, fault.KindOf(err))
}

func TestExecEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := b.Exec(ctx, s.ID, providers.Command{Args: []string{"sh", "-c", "echo up >up; sleep 600"}})
		done <- err
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(b.store().Work(s.ID), "up"))
		return err == nil
	}, tiertest.Limit(t), time.Millisecond)
	cancel()
	require.Equal(t, fault.KindCanceled, fault.KindOf(<-done))
	require.Eventually(t, func() bool {
		u, err := b.Usage(t.Context(), s.ID)
		return err == nil && u.PIDs != nil && *u.PIDs <= 2
	}, tiertest.Limit(t), 5*time.Millisecond, "the command outlives its caller")
}

func TestExecOnATerminal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, "sleep 600")
	var out bytes.Buffer
	e, err := b.Exec(t.Context(), s.ID, providers.Command{
		Args: []string{"sh", "-c", "test -t 0 && test -t 1 && stty size && echo $TERM"}, Stdout: &out,
		TTY: &providers.Terminal{Term: "xterm", Size: providers.Size{Columns: 91, Rows: 17}},
	})
	require.NoError(t, err)
	require.Equal(t, 0, *e.Code, out.String())
	require.Equal(t, []string{"17", "91", "xterm"}, strings.Fields(out.String()))
}

func TestBubblewrapMakesTheFilesystemReadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := b.Create(t.Context(), sandbox.Spec{
		Command: []string{"sh", "-c", `echo mine >mine && cat mine; touch /etc/sbx-was-here && echo wrote; ls ` + b.state + `/local`}, Isolate: "bwrap",
	})
	if fault.KindOf(err) == fault.KindUnsupported {
		t.Skip("bubblewrap is not installed")
	}
	require.NoError(t, err)
	b.ended(t, s.ID)
	out := b.output(t, s.ID)
	require.Contains(t, out, "mine")
	require.NotContains(t, out, "wrote")
	require.NoFileExists(t, "/etc/sbx-was-here")
}
