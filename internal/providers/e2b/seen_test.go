package e2b_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/e2btest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

func TestWhatWasSeenIsNotReadAgain(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	p := open(t, fake, e2b.Type())
	id, paused := fake.Add(e2btest.Seed{}), fake.Add(e2btest.Seed{Paused: true})

	err := p.Terminate(t.Context(), paused, providers.TerminateOptions{Seen: &sandbox.Sandbox{ID: paused, State: sandbox.StatePaused}})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "its snapshot would die")
	assert.Empty(t, fake.Calls(""))

	err = p.Terminate(t.Context(), paused, providers.TerminateOptions{})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "nobody has looked, so it looks itself")
	assert.Len(t, fake.Calls(""), 1)
	assert.Zero(t, fake.Changes())

	require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &sandbox.Sandbox{ID: id, State: sandbox.StateRunning}}))
	assert.Len(t, fake.Calls(""), 2, "the request alone")
}

// TestEventsThatNeverEndAreAnError: an API that ignores the offset gives the same full page
// again and again.
func TestEventsThatNeverEndAreAnError(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	p := open(t, fake, e2b.Type())
	id := fake.Add(e2btest.Seed{})
	event := `{"id":"%d","type":"sandbox.lifecycle.created","timestamp":"2026-01-01T00:00:00Z"}`
	rows := make([]string, 100)
	for i := range rows {
		rows[i] = fmt.Sprintf(event, i)
	}
	fake.Break(wiretest.Fault{Route: "GET /events/sandboxes/{id}", Status: http.StatusOK, Body: "[" + strings.Join(rows, ",") + "]"})
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	_, err := p.(*e2b.Client).Events(ctx, id) //nolint:forcetypeassert,errcheck // the type is e2b
	require.ErrorContains(t, err, "the listing does not end")
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
}

// TestTheHostProvesNoEndOfAPausedOne: the edge says of every paused sandbox what it says of an ended one, and a resume
// that is in flight publishes the sandbox again after its DELETE.
func TestTheHostProvesNoEndOfAPausedOne(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	p := open(t, fake, e2b.Type())
	id := fake.Add(e2btest.Seed{Paused: true})
	require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	asked := len(fake.Calls(""))
	v, ok := providers.As[providers.Verifier](p)
	require.True(t, ok)
	now := time.Now()
	for missing, want := range map[time.Duration]sandbox.Verdict{0: sandbox.Unknown, 19 * time.Second: sandbox.Unknown, 20 * time.Second: sandbox.True} {
		proof, err := v.VerifyEnd(t.Context(), id, providers.EndQuery{
			Delete: true, Since: now.Add(-missing), Now: now, Request: &sandbox.EndRequest{At: now, Acknowledged: true, State: sandbox.StatePaused},
		})
		require.NoError(t, err)
		assert.Equal(t, want, proof.Ended, "missing for %s", missing)
		assert.False(t, proof.Independent)
	}
	assert.Len(t, fake.Calls(""), asked, "its host is not asked: traffic may wake a paused one")
}

// TestTheLongestLifetimeProvesAnEnd: after a DELETE without an answer nothing else can, and it is said when it will.
func TestTheLongestLifetimeProvesAnEnd(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	v, ok := providers.As[providers.Verifier](open(t, fake, e2b.Type()))
	require.True(t, ok)
	started := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for later, independent := range map[time.Duration]bool{time.Hour: false, 24 * time.Hour: false, 25 * time.Hour: true} {
		now := started.Add(later)
		proof, err := v.VerifyEnd(t.Context(), "inosuchsandbox000000", providers.EndQuery{
			Delete: true, Since: now, Now: now, Request: &sandbox.EndRequest{At: started.Add(time.Minute), StartedAt: started, State: sandbox.StateRunning},
		})
		require.NoError(t, err)
		assert.Equal(t, independent, proof.Independent, "%s after its start", later)
		assert.Equal(t, started.Add(24*time.Hour), proof.IndependentFrom)
	}
}

// TestQueriesAndLooksAreNoWork: envd logs each call that it serves. A program that another client starts
// is work, a look of sbx and a query of anybody are not.
func TestQueriesAndLooksAreNoWork(t *testing.T) {
	t.Parallel()
	for _, novita := range []bool{false, true} { // the older log, too
		fake := e2btest.New(t, e2btest.Options{Novita: novita, NoMetrics: true})
		kind := e2b.Type()
		if novita {
			kind = e2b.NovitaType()
		}
		p := open(t, fake, kind)
		id := fake.Add(e2btest.Seed{})
		logs, ok := providers.As[providers.LogReader](p)
		require.True(t, ok)
		lists, ok := providers.As[providers.ProcessLister](p)
		require.True(t, ok)
		commands, ok := providers.As[providers.Commander](p)
		require.True(t, ok)
		prober, ok := providers.As[providers.ExitReader](p)
		require.True(t, ok)
		read := func(q providers.LogQuery) (texts []string) {
			for line, err := range logs.Logs(t.Context(), id, q) {
				require.NoError(t, err)
				texts = append(texts, line.Text)
			}
			return texts
		}
		_, err := lists.Processes(t.Context(), id)
		require.NoError(t, err)
		_, _ = prober.Exit(t.Context(), id)
		assert.Empty(t, read(providers.LogQuery{Work: true}))
		assert.Equal(t, []string{"Process list"}, read(providers.LogQuery{}), "a person sees it")
		_, err = commands.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
		require.NoError(t, err)
		_, err = lists.Processes(t.Context(), id)
		require.NoError(t, err)
		work := read(providers.LogQuery{Work: true, Tail: 4})
		assert.Contains(t, work, "Process start (server stream start)", "a command of a person is work")
		assert.NotContains(t, work, "Process list")
	}
}
