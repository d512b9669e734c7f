package engine_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops/incidents"
	"sbx/internal/runbook/engine"
	"sbx/internal/testkit/fake"
)

// TestARunOpensNothing: its own record is all that it writes of the incident, and it is what is reported; dry runs
// and drills are not.
func TestARunOpensNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, runOpensNothing)
}

func runOpensNothing(t *testing.T) {
	s := newSite(t, "", prod(fake.Options{}, calm("a")))
	find := func(word string) (incidents.Scope, error) { return engine.FindIncident(t.Context(), s.env(t), word) }
	s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), DryRun: true}, &person{})
	drill := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), Staged: true}, &person{})
	_, err := find("")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "--since")

	<-time.After(time.Minute)
	first := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{answer: typesWords})
	scope, err := find("")
	require.NoError(t, err)
	assert.Equal(t, first.ID, scope.ID)
	assert.Equal(t, first.EndedAt.UTC(), scope.Until.UTC())
	assert.Greater(t, scope.NotedUntil, scope.Until)
	<-time.After(time.Minute)
	second := s.run(t, engine.Request{Book: shipped(t, "cleanup-not-running")}, &person{})
	scope, err = find(first.ID)
	require.NoError(t, err)
	assert.True(t, scope.NotedUntil.Before(second.StartedAt), "what is noted later is about the second")
	scope, err = find(second.ID[:len(second.ID)-3])
	require.NoError(t, err)
	assert.Equal(t, "cleanup_failing", scope.Alert, "it is for this alert alone")
	scope, err = find(drill.ID)
	require.NoError(t, err)
	assert.Equal(t, drill.ID, scope.ID, "a drill is reported by its id")
	_, err = os.Stat(filepath.Join(s.dir, "incidents"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestAnIncidentHasTheRunsOfItsTime: the steps that are over and the causes, also of a run that was begun
// before, at the profiles that it is about, and nothing of a dry run.
func TestAnIncidentHasTheRunsOfItsTime(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", prod(fake.Options{}, calm("a")))
	s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck"), DryRun: true}, &person{})
	run := s.run(t, engine.Request{Book: shipped(t, "sandbox-stuck")}, &person{})
	disk, err := s.env(t).RunbookRuns()
	require.NoError(t, err)
	find := engine.RunsOfIncident(disk)
	for name, test := range map[string]struct {
		id           string
		since, until time.Time
		profiles     []string
		has          bool
	}{
		"begun before": {"", run.StartedAt.Add(time.Nanosecond), run.EndedAt, nil, true},
		"its profile":  {"", run.StartedAt, run.EndedAt, []string{"prod", "x"}, true},
		"another one":  {"", run.StartedAt, run.EndedAt, []string{"x"}, false},
		"by its id":    {run.ID, run.StartedAt, run.EndedAt, []string{"x"}, true},
		"ended before": {"", run.EndedAt.Add(time.Hour), run.EndedAt.Add(2 * time.Hour), nil, false},
		"begun later":  {"", run.StartedAt.Add(-2 * time.Hour), run.StartedAt.Add(-time.Hour), nil, false},
	} {
		found := find(test.id, test.since, test.until, test.profiles)
		require.Empty(t, found.Errors, name)
		assert.Equal(t, test.has, len(found.Steps) > 0, name)
		for _, step := range found.Steps {
			assert.Equal(t, run.ID, step.Run)
			assert.NotZero(t, step.Ended)
			assert.Contains(t, []string{"done", "failed", "skipped"}, step.State)
		}
		for _, call := range found.Calls {
			assert.False(t, call.WasTold(), name)
		}
	}
}
