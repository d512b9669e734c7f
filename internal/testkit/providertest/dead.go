package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// DeadSubject is a sandbox that is listed as running and in which nothing answers.
type DeadSubject struct {
	P      providers.Provider
	ID     string
	Silent bool       // it accepts requests and does not answer; false = a definite answer says that it is dead
	All    func() int // the requests until now
	Inside func() int // those into the sandbox
}

// The most requests of one look at a dead sandbox: two definite answers prove it, and its record and
// what is kept outside of it are read once or twice each.
const (
	mostInside = 2
	mostLife   = 6
	mostAll    = 8
)

// CheckDead checks that a look ends with the first definite answer, or without one, and asks for nothing
// again; the probe gets the second answer that proves a sandbox dead. What is concluded is what the probe
// alone would say.
func CheckDead(t T, s DeadSubject) {
	t.Helper()
	record, err := s.P.Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateRunning, record.State)
	want := sandbox.Unknown
	if !s.Silent {
		alone, err := requireAbility[providers.Prober](t, &Subject{P: s.P}).Probe(t.Context(), s.ID)
		require.NoError(t, err)
		want = alone.Verdict
	}
	f := fleet.New([]fleet.Member{{Provider: s.P}}, fleet.Options{Sample: time.Millisecond})
	for name, look := range map[string]struct {
		observe func() fleet.Observation
		most    int
	}{
		"for life": {func() fleet.Observation { return f.ObserveLife(t.Context(), record) }, mostLife},
		"for all":  {func() fleet.Observation { return f.Observe(t.Context(), record) }, mostAll},
	} {
		all, inside := s.All(), s.Inside()
		got := look.observe()
		assert.LessOrEqual(t, s.Inside()-inside, mostInside, "a look %s asks inside", name)
		assert.LessOrEqual(t, s.All()-all, look.most, "a look %s", name)
		assert.Equal(t, want != sandbox.False, got.LookErr() != nil, "a sandbox that hangs is not judged, and named: %v", got.LookErr())
		require.Error(t, got.Usage.Err)
		assert.Equal(t, want, got.Health.Got.Verdict, "a look %s: %v", name, got.Health)
	}
}

// checkEndedIsNoOutage checks that questions about what has ended say nothing of its provider: a few of them must not
// keep anybody from the others. What is stopped or paused counts alike.
func checkEndedIsNoOutage(t T, s *Subject) {
	ids := []string{s.startSandbox(t, sandbox.Spec{Command: []string{"sleep", "600"}})}
	s.endSandbox(t, ids[0])
	if s.c.Paused != nil {
		ids = append(ids, s.c.Paused(t, s.P))
	}
	for _, id := range ids {
		f := fleet.New([]fleet.Member{{Provider: s.P}}, fleet.Options{Sample: time.Millisecond})
		record, err := s.P.Get(s.callContext(t), id)
		if err != nil { // it is gone
			record = sandbox.Sandbox{Provider: s.P.Name(), ID: id, State: sandbox.StateRunning}
		}
		seen := f.Observe(s.callContext(t), record)
		for name, err := range map[string]error{"usage": seen.Usage.Err, "logs": seen.Logs.Err, "processes": seen.Processes.Err, "exit": seen.Exit.Err, "probe": seen.Health.Err, "events": seen.Events.Err} {
			assert.False(t, fault.KindOf(err) == fault.KindUnavailable && !fault.AboutOneSandbox(err), "%s of what has ended counts as an outage: %v", name, err)
		}
	}
}
