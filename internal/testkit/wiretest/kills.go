package wiretest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// Victim is a running sandbox for commands that end in every way.
type Victim struct {
	Server    *Server
	P         providers.Commander
	ID        string
	Processes func() []*Running // the real processes that run in it
	Stream    string            // the route that streams a command

	output chan struct{} // closed at the first output of the command
}

type firstOutput struct {
	once sync.Once
	seen chan struct{}
}

// Write implements io.Writer.
func (f *firstOutput) Write(p []byte) (int, error) {
	f.once.Do(func() { close(f.seen) })
	return len(p), nil
}

// killCase is one way in which a command ends, and the expected exit.
type killCase struct {
	name   string
	script string
	end    func(t *testing.T, v Victim, cancel func()) // ends the running command; nil = it ends by itself
	code   int                                         // -1 = no code is seen
	class  sandbox.Class
	err    fault.Kind
}

// mostKills is how often a command is started again whose kill did not arrive in its time: on a
// machine with fifty programs for each core that is not rare.
const mostKills = 20

// RunKills checks a provider's exec with every kind of end: exit n, SIGKILL of the process, of its
// child, timeout, lost stream, not found. The code 137 alone is never classified as out of
// memory.
func RunKills(t *testing.T, open func(t *testing.T) Victim) {
	t.Helper()
	first := func(t *testing.T, v Victim) *Running {
		t.Helper()
		var running []*Running
		require.Eventually(t, func() bool { running = v.Processes(); return len(running) > 0 }, tiertest.Limit(t), 5*time.Millisecond)
		return running[0]
	}
	for _, k := range []killCase{
		{"exit 0", "exit 0", nil, 0, sandbox.ClassOK, ""},
		{"exit n", "exit 3", nil, 3, sandbox.ClassAgentError, ""},
		{"SIGKILL of the process", "exec sleep 600", func(t *testing.T, v Victim, _ func()) {
			t.Helper()
			require.NoError(t, first(t, v).Signal(syscall.SIGKILL))
		}, 137, sandbox.ClassKilledUnknown, ""},
		{"SIGKILL of a child", "sleep 600; exit $?", func(t *testing.T, v Victim, _ func()) {
			t.Helper()
			r := first(t, v)
			require.Eventually(t, r.KillChild, tiertest.Limit(t), 5*time.Millisecond)
		}, 137, sandbox.ClassKilledUnknown, ""},
		{"a time limit of ours", "echo up; sleep 600", func(_ *testing.T, v Victim, cancel func()) {
			<-v.output // before that the client may not know the command
			cancel()
		}, -1, "", fault.KindCanceled},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			for tries < mostKills && !k.runCase(t, open(t)) {
				tries++
			}
			assert.Less(t, tries, mostKills, "the command runs on")
		})
	}
	t.Run("a lost stream", func(t *testing.T) {
		t.Parallel()
		v := open(t)
		v.Server.Break(Fault{Route: v.Stream, Trouble: TroubleTruncate})
		exit, err := v.P.Exec(t.Context(), v.ID, shellCommand("echo some words; exit 3"))
		assert.Nil(t, exit.Code, "what was not seen has no code")
		assert.Equal(t, sandbox.ClassTransport, exit.Class)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.NotEmpty(t, exit.Evidence)
	})
	t.Run("a kill that does not arrive", func(t *testing.T) {
		t.Parallel()
		open(t).checkLostKill(t)
	})
	t.Run("not found", func(t *testing.T) {
		t.Parallel()
		v := open(t)
		_, err := v.P.Exec(t.Context(), v.ID, providers.Command{Args: []string{"no-such-program-7f3a"}, Stdout: io.Discard, Stderr: io.Discard})
		assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(err), "%v", err)
		assert.Equal(t, 127, fault.ExitCode(err))
	})
}

// checkLostKill gives up a command whose kill is not answered.
func (v Victim) checkLostKill(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v.output = make(chan struct{})
	command := shellCommand("echo up; sleep 600")
	command.Stdout = &firstOutput{seen: v.output}
	go func() {
		<-v.output
		v.Server.Break(Fault{Status: http.StatusServiceUnavailable})
		cancel()
	}()
	_, err := v.P.Exec(ctx, v.ID, command)
	assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
	assert.ErrorContains(t, err, "may still run") //nolint:testifylint // the rest is checked all the same
	assert.Contains(t, fault.HintOf(err), "sbx terminate prod/"+v.ID)
}

func shellCommand(script string) providers.Command {
	return providers.Command{Args: []string{"sh", "-c", script}, Stdout: io.Discard, Stderr: io.Discard}
}

// runCase ends one command; false = it runs on although its caller has left. A client gives the
// kill wirekit.CleanupLimit in all, which a busy machine may take up, so one such run is no failure yet.
func (k killCase) runCase(t *testing.T, v Victim) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		exit sandbox.Exit
		err  error
	}
	v.output = make(chan struct{})
	command := shellCommand(k.script)
	command.Stdout = &firstOutput{seen: v.output}
	done := make(chan result, 1)
	go func() {
		exit, err := v.P.Exec(ctx, v.ID, command)
		done <- result{exit, err}
	}()
	if k.end != nil {
		k.end(t, v, cancel)
	}
	got := <-done
	assert.Equal(t, k.err, fault.KindOf(got.err), "%v", got.err)
	assert.NotEqual(t, sandbox.CauseOOM, got.exit.Cause, "no kernel said so")
	assert.Equal(t, k.class, got.exit.Class)
	if k.code < 0 {
		assert.Nil(t, got.exit.Code)
		for deadline := time.Now().Add(10 * time.Second); len(v.Processes()) > 0; {
			if time.Now().After(deadline) {
				return false
			}
			require.NoError(t, poll.Sleep(t.Context(), 5*time.Millisecond))
		}
		return true
	}
	require.NotNil(t, got.exit.Code)
	assert.Equal(t, k.code, *got.exit.Code)
	assert.NotEmpty(t, got.exit.Evidence)
	return true
}
