package fake_test

import (
	"bytes"
	"context"
	"io"
	"strings"
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

func TestLogsArriveByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{})
		made, err := p.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo a; sleep 5; echo b; sleep 1"}})
		require.NoError(t, err)
		began := time.Now()
		var got []string
		var at []time.Duration
		for line, err := range p.Logs(t.Context(), made.ID, providers.LogQuery{Follow: true}) {
			require.NoError(t, err)
			got, at = append(got, line.Text), append(at, time.Since(began))
			assert.Equal(t, time.Since(began), line.At.Sub(began), "a line arrives when it is written")
		}
		assert.Equal(t, []string{"a", "b"}, got)
		assert.Equal(t, []time.Duration{0, 5 * time.Second}, at)
		assert.Equal(t, 6*time.Second, time.Since(began), "following ends with the program")
	})
}

func TestFollowHearsWhatIsWrittenAndTheEnd(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]fake.After{"kept": fake.AfterKept, "gone": fake.AfterGone} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{After: after, EndFor: time.Second})
			id := p.Add(fake.Seed{})[0]
			got := make(chan string, 10)
			go func() {
				defer close(got)
				for line, err := range p.Logs(t.Context(), id, providers.LogQuery{Follow: true}) {
					assert.NoError(t, err)
					got <- line.Text
				}
			}()
			synctest.Wait()
			p.Write(id, sandbox.LogLine{Text: "one"}, sandbox.LogLine{Text: "two"})
			synctest.Wait()
			assert.Len(t, got, 2)
			assert.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{}))
			for range got {
				continue
			}
		})
	}
}

func TestHugeLogsAreMadeAsTheyAreRead(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	id := p.Add(fake.Seed{Flood: 50_000_000})[0]
	n := 0
	for line, err := range p.Logs(t.Context(), id, providers.LogQuery{}) {
		require.NoError(t, err)
		assert.Equal(t, "line 0", line.Text)
		n++
		break
	}
	assert.Equal(t, 1, n)
	for line, err := range p.Logs(t.Context(), id, providers.LogQuery{Tail: 1}) {
		require.NoError(t, err)
		assert.Equal(t, "line 49999999", line.Text)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	ids := p.Add(
		fake.Seed{},
		fake.Seed{Usage: func(time.Time) sandbox.Usage { return sandbox.Usage{Source: "seed"} }},
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StateTerminated}},
	)
	for i, want := range []struct {
		source string
		known  bool
	}{{"fake", true}, {"seed", false}, {"fake", false}} {
		u, err := p.Usage(t.Context(), ids[i])
		require.NoError(t, err)
		assert.Equal(t, want.source, u.Source)
		assert.Equal(t, want.known, u.MemoryBytes != nil)
		assert.False(t, u.At.IsZero())
	}
}

func TestExecNeedsALivingSandbox(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	ids := p.Add(
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StateTerminated}},
		fake.Seed{Sandbox: sandbox.Sandbox{State: sandbox.StatePaused}},
		fake.Seed{},
	)
	for i, want := range []fault.Kind{fault.KindGone, fault.KindUnavailable, fault.KindNone} {
		_, err := p.Exec(t.Context(), ids[i], providers.Command{Args: []string{"true"}})
		assert.Equal(t, want, fault.KindOf(err), "%v", err)
	}
	assert.Equal(t, sandbox.StatePaused, state(t, p, ids[1]), "exec does not wake")
}

func TestExecEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{"for a while": {"sleep", "3600"}, "for ever": {"sleep", "infinity"}} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{})
			made, err := p.Create(t.Context(), sandbox.Spec{TTL: time.Minute})
			require.NoError(t, err)
			began := time.Now()
			_, err = p.Exec(t.Context(), made.ID, providers.Command{Args: command})
			assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
			assert.Equal(t, time.Minute, time.Since(began))
		})
	}
}

func TestExecTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{})
		id := p.Add(fake.Seed{})[0]
		began := time.Now()
		var out bytes.Buffer
		exit, err := p.Exec(t.Context(), id, providers.Command{
			Args: []string{"sh", "-c", "cat; sleep 2; echo done"}, Stdin: strings.NewReader("in\n"), Stdout: &out,
		})
		require.NoError(t, err)
		assert.Equal(t, 0, *exit.Code)
		assert.Equal(t, "in\ndone\n", out.String())
		assert.Equal(t, 2*time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Exec(ctx, id, providers.Command{Args: []string{"sleep", "infinity"}, Stdout: io.Discard})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
	})
}

func TestCreateRefusesWhatMemoryCannotHold(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	_, err := p.Create(t.Context(), sandbox.Spec{RequireHardLimit: true})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	made, err := p.Create(t.Context(), sandbox.Spec{MemoryBytes: 64 * sandbox.MiB})
	require.NoError(t, err)
	assert.Equal(t, int64(64*sandbox.MiB), *made.Limits.MemoryBytes)
	assert.Nil(t, made.Limits.CPU, "what was not asked for is not known")
	assert.Equal(t, sandbox.EnforcementNone, made.Limits.Enforcement)
}

func TestIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{"prod", "staging"} {
		for _, id := range fake.New(fake.Options{Name: name}).Add(make([]fake.Seed, 2000)...) {
			assert.False(t, seen[id], "%s is given twice", id)
			seen[id] = true
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	planted := []providers.Check{{Check: "token", Verdict: sandbox.False, Message: "expired"}}
	assert.Equal(t, planted, fake.New(fake.Options{Checks: planted}).Check(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, sandbox.Unknown, fake.New(fake.Options{}).Check(ctx)[0].Verdict)
}

func TestEventsTellALife(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	made, err := p.Create(t.Context(), sandbox.Spec{})
	require.NoError(t, err)
	require.NoError(t, p.Terminate(t.Context(), made.ID, providers.TerminateOptions{By: "alice"}))
	events, err := p.Events(t.Context(), made.ID)
	require.NoError(t, err)
	var words []string
	for _, e := range events {
		words = append(words, e.Event+":"+e.Detail)
	}
	assert.Equal(t, "created: started: terminate:alice ended:killed_by_us", strings.Join(words, " "))
}
