package providertest

import (
	"context"
	"maps"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func checkProbe(t T, s *Subject) {
	p := requireAbility[providers.Prober](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	h, err := p.Probe(s.callContext(t), id)
	require.NoError(t, err)
	assert.NotEqual(t, sandbox.False, h.Verdict, "what runs answers, or it is not known")
	assert.NotEmpty(t, h.Evidence, "a verdict has evidence")
	_, err = p.Probe(s.callContext(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	s.endSandbox(t, id)
	if h, err = p.Probe(s.callContext(t), id); err == nil {
		assert.NotEqual(t, sandbox.True, h.Verdict, "what has ended answers")
	}
}

func checkEditLabels(t T, s *Subject) {
	e := requireAbility[providers.LabelEditor](t, s)
	id := s.startSandbox(t, sandbox.Spec{Labels: map[string]string{"team": "a"}})
	before, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	for _, edit := range []func(map[string]string){
		func(l map[string]string) { l[sandbox.LabelKeep] = "2030-01-02T03:04:05Z" },
		func(l map[string]string) { l[sandbox.LabelKeep] = "true" },
		func(l map[string]string) { delete(l, sandbox.LabelKeep) },
	} {
		want := map[string]string{}
		maps.Copy(want, before.Labels)
		edit(want)
		written, err := e.EditLabels(s.callContext(t), id, edit)
		require.NoError(t, err)
		assert.Equal(t, want, written, "what was written")
		now, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		assert.Equal(t, want, now.Labels, "what another read shows")
		assert.Equal(t, before.State, now.State, "labels are no part of its life")
		assert.Equal(t, before.ExpiresAt, now.ExpiresAt, "labels are no part of its life")
	}
}

func checkEvents(t T, s *Subject) {
	r := requireAbility[providers.EventReader](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	events, err := r.Events(s.callContext(t), id)
	require.NoError(t, err)
	for i, e := range events {
		assert.NotEmpty(t, e.Event)
		if i > 0 {
			assert.False(t, e.At.Before(events[i-1].At), "event %d is older than the one before", i)
		}
	}
	_, err = r.Events(s.callContext(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

func checkStats(t T, s *Subject) {
	r := requireAbility[providers.StatsReader](t, s)
	s.startSandbox(t, sandbox.Spec{})
	stats, err := r.Stats(s.callContext(t))
	require.NoError(t, err)
	for name, n := range map[string]*int64{"active": stats.Active, "created": stats.TotalCreated} {
		assert.True(t, n == nil || *n > 0, "%s: one runs, so it is counted or not known", name)
	}
	for name, n := range map[string]*int64{"destroyed": stats.TotalDestroyed, "timed out": stats.TimedOut} {
		assert.True(t, n == nil || *n >= 0, "%s is negative", name)
	}
}

func checkSweep(t T, s *Subject) {
	w := requireAbility[providers.Sweeper](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	_, err := w.Sweep(s.callContext(t))
	require.NoError(t, err)
	s.checkStillRuns(t, id, "a sweep took what lives")
}

func checkDoctor(t T, s *Subject) {
	c := requireAbility[providers.Checker](t, s)
	s.checkFindings(t, c.Check(s.callContext(t)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var late []providers.Check
	require.True(t, s.returnsInTime(func() { late = c.Check(ctx) }), "a doctor goes on after ctx has ended")
	s.checkFindings(t, late)
}

func (s *Subject) checkFindings(t T, all []providers.Check) {
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

func checkUsage(t T, s *Subject) {
	r := requireAbility[providers.UsageReader](t, s)
	id := s.startSandbox(t, sandbox.Spec{})
	u, err := r.Usage(s.callContext(t), id)
	require.NoError(t, err)
	assert.False(t, u.At.IsZero(), "a sample has a time")
	assert.False(t, u.At.After(time.Now().Add(time.Minute)), "a sample from the future: %s", u.At)
	assert.NotEmpty(t, u.Source, "a sample names its source")
	// A running sandbox uses memory and has a process, and a limit is not 0.
	for name, n := range map[string]*int64{
		"memory": u.MemoryBytes, "peak": u.MemoryPeakBytes, "limit": u.MemoryLimitBytes, "pids": u.PIDs,
	} {
		assert.True(t, n == nil || *n > 0, "%s: what is not known is nil, not %v", name, n)
	}
	for name, f := range map[string]*float64{"cpu_percent": u.CPUPercent, "cpu_seconds": u.CPUSeconds} {
		assert.True(t, f == nil || *f >= 0, "%s is negative", name)
	}
}

func lineTexts(lines []sandbox.LogLine) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, l.Text)
	}
	return out
}

func checkLogs(t T, s *Subject) {
	id := s.startWriter(t, "one", "two", "three")
	got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, lineTexts(got))
	for i, l := range got {
		assert.NotContains(t, l.Text, "\n", "a line has no line end")
		if i > 0 && !l.At.IsZero() {
			assert.False(t, l.At.Before(got[i-1].At), "line %d is older than the one before", i)
		}
	}
}

func checkLogsTail(t T, s *Subject) {
	id := s.startWriter(t, "one", "two", "three")
	for n, want := range map[int][]string{1: {"three"}, 2: {"two", "three"}, 9: {"one", "two", "three"}} {
		got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Tail: n})
		require.NoError(t, err)
		assert.Equal(t, want, lineTexts(got), "tail %d", n)
	}
}

func checkLogsSince(t T, s *Subject) {
	id := s.startWriter(t, "one", "two")
	past, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Since: time.Now().Add(-time.Hour)})
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two"}, lineTexts(past))
	if len(past) > 0 && past[0].At.IsZero() {
		return // a line without a time is not old
	}
	none, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), id, providers.LogQuery{Since: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	assert.Empty(t, none)
}

func checkLogsUnknown(t T, s *Subject) {
	got, err := readLogs(s.callContext(t), requireAbility[providers.LogReader](t, s), unknownID, providers.LogQuery{})
	assert.Empty(t, got)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}

func checkFollowEnd(t T, s *Subject) {
	id := s.startWriter(t, "one", "two")
	r := requireAbility[providers.LogReader](t, s)
	first := make(chan struct{})
	var got []sandbox.LogLine
	var err error
	finished := make(chan bool, 1)
	ctx, cancel := context.WithCancel(s.callContext(t))
	defer cancel()
	go func() {
		finished <- s.returnsInTime(func() {
			for line, e := range r.Logs(ctx, id, providers.LogQuery{Follow: true}) {
				if err = e; e != nil {
					return
				}
				if got = append(got, line); len(got) == 1 {
					close(first)
				}
			}
		})
	}()
	require.True(t, s.returnsInTime(func() { <-first }), "nothing comes while following")
	s.endSandbox(t, id)
	require.True(t, <-finished, "follow goes on after the sandbox has ended")
	require.NoError(t, err, "the end of the sandbox is a plain end of its log")
	require.GreaterOrEqual(t, len(got), 2)
	assert.Equal(t, []string{"one", "two"}, lineTexts(got)[:2])
}

// checkFollowOpen checks that a line that has not ended is shown while following, where that is asked
// for, and only then.
func checkFollowOpen(t T, s *Subject) {
	if !hasAbility(s.P, "create") {
		t.Skipf("%s cannot create", s.P.Type())
	}
	id := s.startSandbox(t, sandbox.Spec{Command: []string{"sh", "-c", "echo one; printf two; sleep 600"}})
	ctx, cancel := context.WithCancel(s.callContext(t))
	defer cancel()
	var got sandbox.LogLine
	require.True(t, s.returnsInTime(func() {
		for line, err := range requireAbility[providers.LogReader](t, s).Logs(ctx, id, providers.LogQuery{Follow: true, Open: true}) {
			if err != nil || line.OpenBytes > 0 {
				got = line
				return
			}
		}
	}), "what an unfinished line has is not shown")
	assert.Equal(t, "two", got.Text)
	assert.Equal(t, int64(len("two")), got.OpenBytes)
	for line, err := range requireAbility[providers.LogReader](t, s).Logs(s.callContext(t), id, providers.LogQuery{}) {
		require.NoError(t, err)
		assert.Zero(t, line.OpenBytes, "without following, each line is whole")
	}
}

func checkFollowCanceled(t T, s *Subject) {
	id := s.startWriter(t, "one")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	require.True(t, s.returnsInTime(func() {
		for _, last = range requireAbility[providers.LogReader](t, s).Logs(ctx, id, providers.LogQuery{Follow: true}) {
			cancel()
		}
	}), "follow goes on after ctx has ended")
	assert.Equal(t, fault.KindCanceled, fault.KindOf(last), "%v", last)
}
