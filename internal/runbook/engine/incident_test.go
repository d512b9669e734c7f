package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/runbook/engine"
	"sbx/internal/testkit/fake"
)

// TestAPersonAcknowledgesAnIncidentThatIsOpen: the run that started it had nobody.
func TestAPersonAcknowledgesAnIncidentThatIsOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t, "", prod(fake.Options{}, calm("a")))
	acknowledged := func() int {
		i, err := incidents.FindIncident(s.env(t), "", false)
		require.NoError(t, err)
		n := 0
		for _, e := range i.Events {
			if e.Kind == incident.Acknowledged {
				n++
			}
		}
		return n
	}
	book := shipped(t, "sandbox-stuck")
	s.run(t, engine.Request{Book: book}, &person{})
	assert.Zero(t, acknowledged())
	for range 2 {
		s.run(t, engine.Request{Book: book}, &person{answer: typesWords})
		assert.Equal(t, 1, acknowledged(), "the first person counts")
	}
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
		since, until time.Time
		profiles     []string
		has          bool
	}{
		"begun before": {run.StartedAt.Add(time.Nanosecond), run.EndedAt, nil, true},
		"its profile":  {run.StartedAt, run.EndedAt, []string{"prod", "x"}, true},
		"another one":  {run.StartedAt, run.EndedAt, []string{"x"}, false},
		"ended before": {run.EndedAt.Add(time.Hour), run.EndedAt.Add(2 * time.Hour), nil, false},
		"begun later":  {run.StartedAt.Add(-2 * time.Hour), run.StartedAt.Add(-time.Hour), nil, false},
	} {
		steps, _, errs := find(test.since, test.until, test.profiles)
		require.Empty(t, errs, name)
		assert.Equal(t, test.has, len(steps) > 0, name)
		for _, step := range steps {
			assert.Equal(t, run.ID, step.Run)
			assert.NotZero(t, step.Ended)
			assert.Contains(t, []string{"done", "failed", "skipped"}, step.State)
		}
	}
}
