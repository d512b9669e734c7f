package providertest

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func readerChecks() []Check {
	return []Check{
		{"probe_of_running_and_ended", "probe", probes},
		{"events_are_in_order", "events", eventsOrdered},
		{"stats_count_or_are_nil", "stats", statsCount},
		{"sweep_spares_the_living", "sweep", sweepSpares},
		{"doctor_finds_something", "doctor", doctorFinds},
	}
}

func probes(t T, s *Subject) {
	p := ability[providers.Prober](t, s)
	id := s.start(t, sandbox.Spec{})
	h, err := p.Probe(s.context(t), id)
	require.NoError(t, err)
	assert.NotEqual(t, sandbox.False, h.Verdict, "what runs answers, or it is not known")
	assert.NotEmpty(t, h.Evidence, "a verdict has evidence")
	_, err = p.Probe(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	s.end(t, id)
	if h, err = p.Probe(s.context(t), id); err == nil {
		assert.NotEqual(t, sandbox.True, h.Verdict, "what has ended answers")
	}
}

func eventsOrdered(t T, s *Subject) {
	r := ability[providers.EventReader](t, s)
	id := s.start(t, sandbox.Spec{})
	events, err := r.Events(s.context(t), id)
	require.NoError(t, err)
	for i, e := range events {
		assert.NotEmpty(t, e.Event)
		if i > 0 {
			assert.False(t, e.At.Before(events[i-1].At), "event %d is older than the one before", i)
		}
	}
	_, err = r.Events(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

func statsCount(t T, s *Subject) {
	r := ability[providers.StatsReader](t, s)
	s.start(t, sandbox.Spec{})
	stats, err := r.Stats(s.context(t))
	require.NoError(t, err)
	for name, n := range map[string]*int64{"active": stats.Active, "created": stats.TotalCreated} {
		assert.True(t, n == nil || *n > 0, "%s: one runs, so it is counted or not known", name)
	}
	for name, n := range map[string]*int64{"destroyed": stats.TotalDestroyed, "timed out": stats.TimedOut} {
		assert.True(t, n == nil || *n >= 0, "%s is negative", name)
	}
}

func sweepSpares(t T, s *Subject) {
	w := ability[providers.Sweeper](t, s)
	id := s.start(t, sandbox.Spec{})
	_, err := w.Sweep(s.context(t))
	require.NoError(t, err)
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State, "a sweep took what lives")
}

func doctorFinds(t T, s *Subject) {
	c := ability[providers.Checker](t, s)
	s.findings(t, c.Check(s.context(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var late []providers.Check
	require.True(t, s.returns(func() { late = c.Check(ctx) }), "a doctor goes on after ctx has ended")
	s.findings(t, late)
}

// findings holds what doctor found against what its table needs.
func (s *Subject) findings(t T, all []providers.Check) {
	t.Helper()
	require.NotEmpty(t, all, "a doctor says something")
	for _, f := range all {
		assert.NotEmpty(t, f.Check, "a finding has a name")
		assert.Contains(t, []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}, f.Verdict)
		assert.NotEmpty(t, f.Message, "%s: a finding says what was found", f.Check)
		for _, secret := range s.c.Secrets {
			assert.NotContains(t, f.Message+f.Hint, secret, "%s: a finding quotes a secret", f.Check)
		}
	}
}
