//go:build unix

package local_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// stays creates a sandbox that outlives its program.
func (b bench) stays(tb testing.TB, script string, more ...func(*sandbox.Spec)) sandbox.Sandbox {
	tb.Helper()
	spec := sandbox.Spec{Command: []string{"sh", "-c", script}, KeepAfterExit: true}
	for _, change := range more {
		change(&spec)
	}
	return b.create(tb, spec)
}

// exited waits for the end of a program whose sandbox stays.
func (b bench) exited(tb testing.TB, id string) sandbox.Exit {
	tb.Helper()
	var exit *sandbox.Exit
	require.Eventually(tb, func() bool {
		var err error
		exit, err = b.Exit(tb.Context(), id)
		require.NoError(tb, err)
		return exit != nil
	}, tiertest.Limit(tb), 2*time.Millisecond, "no exit of %s", id)
	return *exit
}

// says runs a script in a sandbox and gives what it wrote.
func (b bench) says(tb testing.TB, id, script string) string {
	tb.Helper()
	var out strings.Builder
	exit, err := b.Exec(tb.Context(), id, providers.Command{Args: []string{"sh", "-c", script}, Stdout: &out, Stderr: io.Discard})
	require.NoError(tb, err)
	require.Equal(tb, 0, *exit.Code)
	return strings.TrimSpace(out.String())
}

func TestLingeringOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.stays(t, "echo made > file; echo done; exit 3")
	exit := b.exited(t, s.ID)
	assert.Equal(t, 3, *exit.Code)
	assert.Equal(t, sandbox.ClassAgentError, exit.Class)
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State)
	require.NotNil(t, got.Exit, "a read of it shows the exit, too")
	assert.Equal(t, 3, *got.Exit.Code)
	for range 3 { // with pauses in which the stub has no child at all
		assert.Equal(t, "made", b.says(t, s.ID, "cat file"))
	}
	assert.Equal(t, "done", b.output(t, s.ID))
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "alice", Grace: time.Second}))
	last := b.ended(t, s.ID)
	assert.Equal(t, sandbox.StateTerminated, last.State, "it was stopped")
	assert.Equal(t, 3, *last.Exit.Code, "the stop came after the program's end and is no reason of it")
	assert.Equal(t, sandbox.ClassAgentError, last.Exit.Class)
	assert.Equal(t, "stopped by alice", evidenceOf(last.Exit, "the sandbox ended later"))
	assert.NotEmpty(t, evidenceOf(last.Exit, "tree"))
	after := b.exited(t, s.ID)
	assert.Equal(t, *last.Exit, after)
	nothingLeft(t, s.ID)
}

func TestWithoutLingerNothingStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gate := filepath.Join(t.TempDir(), "go")
	s := b.sh(t, "(setsid sleep 600 &) ; while [ ! -e "+gate+" ]; do sleep 0.01; done; exit 3")
	exit, err := b.Exit(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Nil(t, exit)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	last := b.ended(t, s.ID)
	assert.Equal(t, sandbox.StateFailed, last.State)
	nothingLeft(t, s.ID)
	assert.Equal(t, *last.Exit, b.exited(t, s.ID))
	_, err = b.Exit(t.Context(), "nosuchbox0")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
}

func TestLingeringEndsForItsOwnReasons(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		ttl   time.Duration
		end   func(t *testing.T, b bench, id string)
		state sandbox.State
		said  string
	}{
		"its time was over, and all was well": {"0", 600 * time.Millisecond, nil, sandbox.StateTerminated, "it reached its time limit"},
		"it reached its time limit":           {"3", 600 * time.Millisecond, nil, sandbox.StateFailed, "it reached its time limit"},
		"its supervisor died": {"3", 0, func(t *testing.T, b bench, id string) {
			t.Helper()
			require.NoError(t, syscall.Kill(b.record(t, id).Supervisor.PID, syscall.SIGKILL))
			nothingLeft(t, id)
			swept(t, b, id)
		}, sandbox.StateFailed, "its supervisor or stub was lost"},
		"its stub died": {"3", 0, func(t *testing.T, b bench, id string) {
			t.Helper()
			require.NoError(t, syscall.Kill(b.record(t, id).Stub.PID, syscall.SIGKILL))
		}, sandbox.StateFailed, "its supervisor or stub was lost"},
		"its supervisor hung": {"3", 0, func(t *testing.T, b bench, id string) {
			t.Helper()
			require.NoError(t, syscall.Kill(b.record(t, id).Supervisor.PID, syscall.SIGSTOP))
			require.NoError(t, b.Terminate(t.Context(), id, providers.TerminateOptions{By: "alice"}))
		}, sandbox.StateTerminated, "stopped by alice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.stays(t, "(setsid sleep 600 &); exit "+tc.code, func(s *sandbox.Spec) { s.TTL = tc.ttl })
			b.exited(t, s.ID)
			if tc.end != nil {
				tc.end(t, b, s.ID)
			}
			last := b.ended(t, s.ID)
			assert.Equal(t, tc.state, last.State)
			assert.Equal(t, tc.code, last.Exit.Raw)
			assert.Equal(t, tc.said, evidenceOf(last.Exit, "the sandbox ended later"))
			nothingLeft(t, s.ID)
		})
	}
}

// A stop that comes while the program runs is its reason, lingering or not.
func TestStopOfALingeringProgramIsItsReason(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.stays(t, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done")
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "alice", Grace: time.Minute}))
	last := b.ended(t, s.ID)
	assert.Equal(t, 7, *last.Exit.Code)
	assert.Equal(t, sandbox.ClassStopped, last.Exit.Class)
	assert.Nil(t, b.record(t, s.ID).End)
}

// A busy machine may let the stub wait before it reports the program's end; the stop
// waits for the report, so that the program's own exit code is not lost.
func TestStopWaitsForTheReportOfASlowStub(t *testing.T) {
	t.Parallel()
	for name, keepAfterExit := range map[string]bool{"lingering": true, "ending with its program": false} {
		for how, fullGrace := range map[string]bool{"patient": true, "by default": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				s := b.stays(t, "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done", func(s *sandbox.Spec) { s.KeepAfterExit = keepAfterExit })
				b.waitFor(t, s.ID, "up")
				rec := b.record(t, s.ID)
				require.NoError(t, syscall.Kill(rec.Stub.PID, syscall.SIGSTOP))
				stopped := make(chan error, 1)
				go func() {
					stopped <- b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "alice", Grace: time.Minute, FullGrace: fullGrace})
				}()
				require.Eventually(t, func() bool {
					program, err := identity.Host().Stat(rec.Program.PID)
					return err != nil || program.Dead()
				}, tiertest.Limit(t), time.Millisecond)
				time.Sleep(100 * time.Millisecond) // longer than the looks that find nobody who takes TERM
				require.NoError(t, syscall.Kill(rec.Stub.PID, syscall.SIGCONT))
				require.NoError(t, <-stopped)
				last := b.ended(t, s.ID)
				assert.Equal(t, 7, *last.Exit.Code)
				assert.Equal(t, sandbox.ClassStopped, last.Exit.Class)
			})
		}
	}
}

func TestWhatTheProgramLeftLivesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.stays(t, "(setsid sh -c 'echo $$ > pid; sleep 600' &); while [ ! -s pid ]; do sleep 0.01; done; exit 0")
	b.exited(t, s.ID)
	assert.Equal(t, "alive", b.says(t, s.ID, `kill -0 "$(cat pid)" && echo alive`))
	_, err := b.Sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "alive", b.says(t, s.ID, `kill -0 "$(cat pid)" && echo alive`))
}

func TestLingeringProgramThatRanOutOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: hogCommand(), MemoryBytes: 64 * sandbox.MiB, KeepAfterExit: true})
	needHard(t, s)
	exit := b.exited(t, s.ID)
	assert.Equal(t, sandbox.CauseOOM, exit.Cause)
	assert.Equal(t, withKernelLog(), exit.Confidence)
	assert.Equal(t, "1", evidenceOf(&exit, "oom_kill"))
	assert.Equal(t, "still here", b.says(t, s.ID, "echo still here"))

	// What is killed later for the same reason is not the program's.
	_, err := b.Exec(t.Context(), s.ID, providers.Command{Args: hogCommand()})
	require.NoError(t, err)
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{By: "test"}))
	last := b.ended(t, s.ID)
	assert.Equal(t, "1", evidenceOf(last.Exit, "oom_kill"))
	assert.Equal(t, int64(2), *b.record(t, s.ID).End.OOMKills)
}

func TestFollowEndsWithALingeringProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	// More than a pipe holds, a last line without an end, and one left behind that
	// goes on writing.
	s := b.stays(t, "(while :; do echo noise >&2; sleep 0.01; done &); sleep 0.2; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; printf 'the end'",
		func(s *sandbox.Spec) { s.TTL = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	var lines []string
	for l, err := range b.Logs(ctx, s.ID, providers.LogQuery{Follow: true}) {
		require.NoError(t, err)
		if l.Stream == "stdout" {
			lines = append(lines, l.Text)
			assert.False(t, l.Truncated)
		}
	}
	require.Len(t, lines, 20001)
	assert.Equal(t, "the end", lines[20000])
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State)
	again := 0
	for _, err := range b.Logs(ctx, s.ID, providers.LogQuery{Follow: true, Tail: 1}) {
		require.NoError(t, err)
		again++
	}
	assert.Positive(t, again, "following what has ended gives what there is")
}

func TestWatchdogEndsWhatLingers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.stays(t, "exit 0", func(s *sandbox.Spec) { s.MemoryBytes = 64 * sandbox.MiB })
	needSoft(t, s)
	b.exited(t, s.ID)
	_, _ = b.Exec(t.Context(), s.ID, providers.Command{Args: hogCommand()}) // it ends with its sandbox
	last := b.ended(t, s.ID)
	assert.Equal(t, "the memory watchdog ended it", evidenceOf(last.Exit, "the sandbox ended later"))
	assert.Equal(t, sandbox.ClassOK, last.Exit.Class)
}
