package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// troubled is a scene with one row for every action, in a fleet that is large enough for
// its limits, observed twice.
func troubled(t *testing.T) (*scene, reconcile.Plan) {
	t.Helper()
	s := suspects()
	for _, id := range []string{"b", "c", "d"} {
		s.on(recorded(id, is)).box(id, old)
	}
	s.on(recorded("ghost", is), recorded("stale", is), recorded("twice", is), recorded("twice", is))
	s.box("stale", old, state(sandbox.StateFailed))
	return s, s.proved(t)
}

func outcomes(all []reconcile.Done) map[string]sandbox.Outcome {
	n := map[string]sandbox.Outcome{}
	for _, d := range all {
		n[d.Ref.ID] = d.Outcome
	}
	return n
}

func TestFixRepairsAndTheNextRunIsClean(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	all := s.fix(t, plan)
	assert.Len(t, all, 5)
	assert.Equal(t, map[string]sandbox.Outcome{
		"ghost": sandbox.OutcomeVerified, "stale": sandbox.OutcomeVerified, "orphan": sandbox.OutcomeVerified,
		"leak": sandbox.OutcomeVerified, "twice": sandbox.OutcomeSkipped,
	}, outcomes(all))
	assert.Equal(t, []sandbox.Ref{{Provider: "prod", ID: "ghost"}, {Provider: "prod", ID: "stale"}}, s.marked)
	assert.Equal(t, 2, s.asked())
	s.records = slices.DeleteFunc(s.records, func(r reconcile.Record) bool { return r.SandboxID == "twice" })
	again := s.pass(time.Hour).plan(t)
	assert.Equal(t, 0, again.CountNeedingAction(), "%v", again.Rows)
	assert.Empty(t, s.fix(t, again))
	assert.Equal(t, 2, s.asked())
}

func TestAClockBehindMakesNobodyOld(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.prod.SetSkew(-90 * time.Second)
	s.box("young", 11*time.Minute) // by the provider's clock 9 m 30 s: within the create grace
	plan := s.proved(t)
	assert.NotEqual(t, reconcile.ActTerminate, only(t, plan, "young").Action)
}

func TestIntentsAreDurableBeforeAnythingIsCalled(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.journal.hook = func(_ string, data any) {
		intent, ok := data.(runs.Intent)
		if !ok {
			return
		}
		for _, call := range s.prod.Calls(fake.OpTerminate) {
			assert.NotEqual(t, "prod/"+call.ID, intent.Ref.String(), "asked before it was written down")
		}
		for _, ref := range s.marked {
			assert.NotEqual(t, ref, intent.Ref, "marked before it was written down")
		}
	}
	s.fix(t, plan)
	for _, id := range []string{"ghost", "stale", "orphan", "leak"} {
		i := slices.IndexFunc(s.journal.lines, func(l string) bool {
			return l == "intent prod/"+id+" mark_terminated" || l == "intent prod/"+id+" terminate"
		})
		r := slices.Index(s.journal.lines, "result prod/"+id+" verified")
		assert.True(t, i >= 0 && r > i, "%s: %v", id, s.journal.lines)
	}
	assert.Len(t, s.journal.lines, 8, "what is only reported has no line")
}

func TestWithoutAJournalNothingIsCalled(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.journal.fail = map[string]bool{runs.EntryIntent: true}
	for _, d := range s.fix(t, plan) {
		if d.Row.Action.Acts() {
			assert.Equal(t, sandbox.OutcomeFailed, d.Outcome)
			assert.Error(t, d.Err)
			assert.Contains(t, d.Reason, "no space left")
		}
	}
	assert.Equal(t, 0, s.asked())
	assert.Empty(t, s.marked)

	_, err := s.engine(t).Fix(t.Context(), plan, reconcile.How{Limits: s.limits})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
}

func TestAResultThatCannotBeWrittenIsTold(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.journal.fail = map[string]bool{runs.EntryResult: true}
	for _, d := range s.fix(t, plan) {
		if d.Row.Action.Acts() {
			assert.Equal(t, sandbox.OutcomeVerified, d.Outcome)
			assert.ErrorIs(t, d.Journal, errDisk)
		}
	}
}

// TestEveryRuleIsAppliedAgainJustBefore: between the plan and the end a sandbox may change
// so that a rule protects it.
func TestEveryRuleIsAppliedAgainJustBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*scene, *sandbox.Sandbox)
		want sandbox.Outcome
	}{
		"protected":     {func(_ *scene, b *sandbox.Sandbox) { b.Labels = map[string]string{sandbox.LabelKeep: "true"} }, sandbox.OutcomeSkipped},
		"not owned":     {func(_ *scene, b *sandbox.Sandbox) { b.Labels = map[string]string{"team": "others"} }, sandbox.OutcomeSkipped},
		"works":         {func(_ *scene, b *sandbox.Sandbox) { b.Activity = is }, sandbox.OutcomeSkipped},
		"begun anew":    {func(s *scene, b *sandbox.Sandbox) { b.StartedAt = s.now.Add(-time.Minute) }, sandbox.OutcomeChanged},
		"another":       {func(s *scene, b *sandbox.Sandbox) { b.CreatedAt = s.now.Add(-time.Hour) }, sandbox.OutcomeChanged},
		"ended":         {func(_ *scene, b *sandbox.Sandbox) { b.State = sandbox.StateTerminated }, sandbox.OutcomeAlreadyGone},
		"state unknown": {func(_ *scene, b *sandbox.Sandbox) { b.State = sandbox.StateUnknown }, sandbox.OutcomeSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, plan := troubled(t)
			s.prod.Change("orphan", func(b *sandbox.Sandbox) { c.edit(s, b) })
			got := outcomes(s.fix(t, plan))
			assert.Equal(t, c.want, got["orphan"])
			assert.Equal(t, sandbox.OutcomeVerified, got["leak"])
			assert.Equal(t, 1, s.asked())
		})
	}
}

// TestAReadThatTheListContradictsEndsNothing: a record by id that says paused spares nobody a look where the list says
// running.
func TestAReadThatTheListContradictsEndsNothing(t *testing.T) {
	t.Parallel()
	s, _ := troubled(t)
	s.denied = map[string]sandbox.State{"orphan": sandbox.StatePaused}
	got := outcomes(s.fix(t, s.proved(t)))
	assert.Equal(t, sandbox.OutcomeSkipped, got["orphan"])
	assert.Equal(t, sandbox.OutcomeVerified, got["leak"])
}

// TestWhatWasResumedSinceThePlanStays: nobody has looked whether it works.
func TestWhatWasResumedSinceThePlanStays(t *testing.T) {
	t.Parallel()
	s, _ := troubled(t)
	s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.State = sandbox.StatePaused })
	plan := s.proved(t)
	s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.State = sandbox.StateRunning })
	assert.Equal(t, sandbox.OutcomeChanged, outcomes(s.fix(t, plan))["orphan"])
}

func TestARecordIsMarkedOnlyWhileItsSandboxIsGone(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.box("ghost", time.Minute)
	s.prod.Break(fake.Fault{Op: fake.OpGet, ID: "stale", Err: planted(fault.KindUnavailable)})
	got := outcomes(s.fix(t, plan))
	assert.Equal(t, sandbox.OutcomeChanged, got["ghost"])
	assert.Equal(t, sandbox.OutcomeFailed, got["stale"])
	assert.Empty(t, s.marked)
}

func TestAMarkThatIsOnlyAcceptedIsReadAgain(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.source.Reread = true
	s.source.Mark = func(ctx context.Context, ref sandbox.Ref, why string) error {
		if ref.ID == "stale" {
			return s.mark(ctx, ref, why)
		}
		return nil // it accepts and does nothing
	}
	got := outcomes(s.fix(t, plan))
	assert.Equal(t, sandbox.OutcomeAccepted, got["ghost"])
	assert.Equal(t, sandbox.OutcomeVerified, got["stale"])

	s, plan = troubled(t)
	s.source.Reread = true
	s.failing = func(int) error { return planted(fault.KindUnavailable) }
	got = outcomes(s.fix(t, plan))
	assert.Equal(t, sandbox.OutcomeAccepted, got["ghost"])
	assert.Equal(t, sandbox.OutcomeAccepted, got["stale"])
}

func TestAMarkThatFailsIsOneFailure(t *testing.T) {
	t.Parallel()
	s, plan := troubled(t)
	s.source.Mark = func(context.Context, sandbox.Ref, string) error { return planted(fault.KindUnsupported) }
	all := s.fix(t, plan)
	assert.Equal(t, sandbox.OutcomeFailed, outcomes(all)["ghost"])
	assert.Equal(t, sandbox.OutcomeVerified, outcomes(all)["leak"])
}

func TestOrphansAreAdopted(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.rules.Adopt = true
	got := outcomes(s.fix(t, s.plan(t)))
	assert.Equal(t, sandbox.OutcomeVerified, got["orphan"])
	assert.Equal(t, []sandbox.Ref{{Provider: "prod", ID: "orphan"}}, s.adopted)
	assert.Equal(t, 0, s.asked())
	assert.Equal(t, reconcile.CauseAgrees, only(t, s.plan(t), "orphan").Cause)

	s = suspects()
	s.rules.Adopt = true
	plan := s.plan(t)
	s.prod.Change("orphan", state(sandbox.StateTerminated))
	assert.Equal(t, sandbox.OutcomeChanged, outcomes(s.fix(t, plan))["orphan"])
	assert.Empty(t, s.adopted)
}

func TestAnInterruptionLeavesTheRestUntouched(t *testing.T) {
	t.Parallel()
	for _, adopt := range []bool{false, true} {
		s, plan := troubled(t)
		if s.rules.Adopt = adopt; adopt {
			plan = s.plan(t)
			require.Equal(t, reconcile.ActAdopt, only(t, plan, "orphan").Action)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		seq, err := s.engine(t).Fix(ctx, plan, s.how())
		require.NoError(t, err)
		n := 0
		for d := range seq {
			n++
			if d.Row.Action.Acts() {
				assert.Equal(t, sandbox.OutcomeNotAttempted, d.Outcome)
				assert.Equal(t, fault.KindCanceled, fault.KindOf(d.Err))
			}
		}
		assert.Equal(t, plan.CountNeedingAction(), n)
		assert.Equal(t, 0, s.asked())
		assert.Empty(t, s.marked)
		assert.Empty(t, s.adopted)
	}
}

func TestAStopComesBeforeADelete(t *testing.T) {
	t.Parallel()
	for _, del := range []bool{false, true} {
		s := suspects()
		s.rules.Delete = del
		s.fix(t, s.proved(t))
		_, err := s.engine(t).Fleet.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "orphan"})
		if del {
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
		} else {
			assert.NoError(t, err, "its record is kept")
		}
	}
}

// TestNoSecretReachesTheJournal from errors of a provider.
func TestNoSecretReachesTheJournal(t *testing.T) {
	t.Parallel()
	s := crowd(17, 1, 1)
	plan := s.proved(t)
	s.prod.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "the key hunter2 may not")})
	for i := range plan.Rows {
		plan.Rows[i].Reality = append(plan.Rows[i].Reality, sandbox.Evidence{What: "get", Value: "401 for hunter2", Source: "prod"})
	}
	said := ""
	s.journal.hook = func(_ string, data any) { said += fmt.Sprintf("%+v\n", data) }
	how := s.how()
	how.Record.Redact = func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	seq, err := s.engine(t).Fix(t.Context(), plan, how)
	require.NoError(t, err)
	for d := range seq {
		assert.Contains(t, fmt.Sprint(d.Reason, d.Evidence, d.Row.Reality), "hunter2", "printing hides it by itself")
	}
	assert.Contains(t, said, "the key *** may not")
	assert.Contains(t, said, "401 for ***")
	assert.NotContains(t, said, "hunter2")
}
