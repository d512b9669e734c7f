package fake_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// planned makes a fake whose sandboxes run a script.
func planned(o fake.Options, s fake.Script) *fake.Provider {
	o.Program = func(sandbox.Spec) (fake.Script, bool) { return s, true }
	return fake.New(o)
}

func oomKilled() sandbox.Exit {
	return sandbox.Exit{
		Code: new(137), Raw: "signal: 9", Signal: "SIGKILL", Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain,
	}
}

func TestScriptsWriteAndEndByThePlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := planned(fake.Options{ProvisionFor: time.Second}, fake.Script{
			Lines: []fake.Line{{At: 20 * time.Second, Text: "two", Stream: "stderr"}, {At: 5 * time.Second, Text: "one"}},
			For:   time.Minute, Exit: oomKilled(),
		})
		made, err := p.Create(t.Context(), sandbox.Spec{KeepAfterExit: true, TTL: time.Hour})
		require.NoError(t, err)
		began := time.Now()
		var at []time.Duration
		var streams []string
		for line, err := range p.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
			require.NoError(t, err)
			at, streams = append(at, time.Since(began)), append(streams, line.Stream+" "+line.Text)
		}
		assert.Equal(t, []time.Duration{6 * time.Second, 21 * time.Second}, at)
		assert.Equal(t, []string{"stdout one", "stderr two"}, streams)
		assert.Equal(t, 61*time.Second, time.Since(began), "following ends with the program")
		exit, err := p.Exit(t.Context(), made.ID)
		require.NoError(t, err)
		assert.Equal(t, oomKilled(), *exit)
		assert.Equal(t, sandbox.StateRunning, state(t, p, made.ID))
	})
}

func TestExitIsToldAtItsMomentAndForGood(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec  sandbox.Spec
		exit  sandbox.Exit
		stop  bool
		state sandbox.State
	}{
		"stopped":                   {sandbox.Spec{KeepAfterExit: true}, oomKilled(), true, sandbox.StateTerminated},
		"it reached its time limit": {sandbox.Spec{KeepAfterExit: true, TTL: time.Hour}, oomKilled(), false, sandbox.StateFailed},
		"well, and its time too":    {sandbox.Spec{KeepAfterExit: true, TTL: time.Hour}, sandbox.Exit{}, false, sandbox.StateTerminated},
		"no linger":                 {sandbox.Spec{}, oomKilled(), false, sandbox.StateFailed},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := planned(fake.Options{}, fake.Script{For: time.Minute, Exit: tc.exit})
			made, err := p.Create(t.Context(), tc.spec)
			require.NoError(t, err)
			advance(t, time.Minute-1)
			exit, err := p.Exit(t.Context(), made.ID)
			require.NoError(t, err)
			assert.Nil(t, exit, "it runs")
			advance(t, 1)
			before, err := p.Exit(t.Context(), made.ID)
			require.NoError(t, err)
			require.NotNil(t, before)
			if tc.stop {
				require.NoError(t, p.Terminate(t.Context(), made.ID, providers.TerminateOptions{By: "alice"}))
			}
			advance(t, 2*time.Hour)
			after, err := p.Exit(t.Context(), made.ID)
			require.NoError(t, err)
			assert.Equal(t, before, after)
			got, err := p.Get(t.Context(), made.ID)
			require.NoError(t, err)
			assert.Equal(t, tc.state, got.State)
			assert.Equal(t, before, got.Exit)
		})
	}
}

// A program that is stopped while it runs ends by that, lingering or not.
func TestStopWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := planned(fake.Options{}, fake.Script{For: fake.Forever})
		made, err := p.Create(t.Context(), sandbox.Spec{KeepAfterExit: true})
		require.NoError(t, err)
		require.NoError(t, p.Terminate(t.Context(), made.ID, providers.TerminateOptions{}))
		advance(t, time.Hour)
		exit, err := p.Exit(t.Context(), made.ID)
		require.NoError(t, err)
		assert.Equal(t, sandbox.ClassKilledByUs, exit.Class)
	})
}

func TestFinishEndsAProgramByHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := planned(fake.Options{}, fake.Script{Lines: []fake.Line{{At: time.Second, Text: "one"}, {At: time.Hour, Text: "never"}}, For: fake.Forever})
		made, err := p.Create(t.Context(), sandbox.Spec{KeepAfterExit: true})
		require.NoError(t, err)
		var lines []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for line, err := range p.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
				assert.NoError(t, err)
				lines = append(lines, line.Text)
			}
		}()
		advance(t, time.Minute)
		assert.True(t, p.Finish(made.ID, oomKilled()))
		<-done
		assert.Equal(t, []string{"one"}, lines)
		exit, err := p.Exit(t.Context(), made.ID)
		require.NoError(t, err)
		assert.Equal(t, sandbox.ClassOOM, exit.Class)
		assert.False(t, p.Finish(made.ID, sandbox.Exit{}), "it has ended")
		assert.False(t, p.Finish("nobody", sandbox.Exit{}))
		var words []string
		events, err := p.Events(t.Context(), made.ID)
		require.NoError(t, err)
		for _, e := range events {
			words = append(words, e.Event+":"+e.Detail)
		}
		assert.Equal(t, []string{"created:", "started:", "exited:oom"}, words)
	})
}

func TestCreateWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, planted := range map[string]fake.Fault{
		"fails": {Op: fake.OpCreate, Late: true, Err: fault.New(fault.KindUnavailable, "lost")},
		"hangs": {Op: fake.OpCreate, Late: true, Hang: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{ListLag: 10 * time.Second})
			p.Break(planted)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			_, err := p.Create(ctx, sandbox.Spec{Labels: map[string]string{sandbox.LabelNonce: "n1"}})
			require.Error(t, err)
			if planted.Hang {
				assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
				assert.Equal(t, time.Minute, time.Since(began))
			} else {
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
				assert.Empty(t, found(t, p, "n1"), "listings lag behind")
				advance(t, 10*time.Second)
			}
			assert.Len(t, found(t, p, "n1"), 1, "it was created all the same")
		})
	}
}

// A terminate may also hang after it has worked.
func TestTerminateWhoseAnswerNeverComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{})
		id := p.Add(fake.Seed{})[0]
		p.Break(fake.Fault{Op: fake.OpTerminate, Late: true, Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Equal(t, fault.KindTimeout, fault.KindOf(p.Terminate(ctx, id, providers.TerminateOptions{})))
		assert.Equal(t, sandbox.StateTerminated, state(t, p, id))
	})
}

func found(t *testing.T, p *fake.Provider, nonce string) []sandbox.Sandbox {
	t.Helper()
	var all []sandbox.Sandbox
	for s, err := range p.List(t.Context(), providers.Query{Labels: map[string]string{sandbox.LabelNonce: nonce}}) {
		require.NoError(t, err)
		all = append(all, s)
	}
	return all
}

func TestReadsOfAnExpiredSandboxAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := planned(fake.Options{After: fake.AfterGone}, fake.Script{For: time.Second})
		made, err := p.Create(t.Context(), sandbox.Spec{KeepAfterExit: true, TTL: time.Minute})
		require.NoError(t, err)
		advance(t, time.Minute-1)
		_, err = p.Get(t.Context(), made.ID)
		require.NoError(t, err)
		advance(t, 1)
		_, err = p.Get(t.Context(), made.ID)
		assert.Equal(t, fault.KindGone, fault.KindOf(err))
		_, err = p.Exit(t.Context(), made.ID)
		assert.Equal(t, fault.KindGone, fault.KindOf(err))
	})
}

func TestCutStreamsLeaveTheCommandRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Command: func(_ string, c providers.Command) (fake.Script, bool) {
			return fake.Script{
				Lines: []fake.Line{{Text: "one", Open: true}, {At: time.Minute, Text: "two"}}, For: time.Hour, Exit: oomKilled(),
			}, c.Args[0] == "agent"
		}})
		id := p.Add(fake.Seed{})[0]
		p.Break(fake.Fault{Op: fake.OpExec, Cut: 10 * time.Second, Times: 1})
		began := time.Now()
		var out bytes.Buffer
		exit, err := p.Exec(t.Context(), id, providers.Command{Args: []string{"agent"}, Stdout: &out})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.Equal(t, sandbox.ClassTransport, exit.Class)
		assert.Equal(t, "one", out.String())
		assert.Equal(t, 10*time.Second, time.Since(began))

		exit, err = p.Exec(t.Context(), id, providers.Command{Args: []string{"agent"}, Stdout: &out})
		require.NoError(t, err)
		assert.Equal(t, oomKilled(), exit)
		assert.Equal(t, "oneonetwo\n", out.String())
		_, err = p.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
		require.NoError(t, err, "what it knows by itself still runs")
		var lost []bool
		for _, r := range p.Ran() {
			lost = append(lost, r.Lost)
		}
		assert.Equal(t, []bool{true, false, false}, lost)
	})
}

// A cut that comes too late, and the end of ctx, are no lost stream.
func TestCutsThatDoNotHappen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{})
		id := p.Add(fake.Seed{})[0]
		planted := fault.New(fault.KindAuth, "planted")
		p.Break(fake.Fault{Op: fake.OpExec, Cut: 10 * time.Second, Err: planted, Times: 3})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Exec(ctx, id, providers.Command{Args: []string{"sleep", "60"}})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
		_, err = p.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
		require.NoError(t, err, "it ended before its stream was cut")
		_, err = p.Exec(t.Context(), id, providers.Command{Args: []string{"sleep", "60"}})
		assert.Equal(t, fault.KindAuth, fault.KindOf(err))
	})
}

func TestProbeSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{ProvisionFor: time.Hour})
	made, err := p.Create(t.Context(), sandbox.Spec{})
	require.NoError(t, err)
	ids := append(p.Add(
		fake.Seed{},
		fake.Seed{Dead: true},
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StateFailed}},
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StatePaused}},
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StateUnknown}},
	), made.ID)
	var got []providers.Condition
	for _, id := range ids {
		h, err := p.Probe(t.Context(), id)
		require.NoError(t, err)
		got = append(got, h.Condition)
	}
	assert.Equal(t, []providers.Condition{
		providers.ConditionHealthy, providers.ConditionBroken, providers.ConditionRecreate, providers.ConditionResumable, "", providers.ConditionWait,
	}, got)
}
