package cleanup_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// Each test here is a defect that the simulation found, reduced to what it needs.

// scene is one profile, prod, with one sandbox, box1, that runs, is old and silent.
type scene struct {
	p     *fake.Provider
	fleet *fleet.Fleet
	world cleanup.Environment
	rule  cleanup.Rule
	notes notes
}

// notes is a journal that only counts.
type notes map[string]int

func (n notes) Append(kind string, _ any) error {
	n[kind]++
	return nil
}

func oneOld(o fake.Options, change ...func(*fake.Seed)) *scene {
	o.Name = "prod"
	p := fake.New(o)
	now := time.Now()
	seed := fake.Seed{Sandbox: sandbox.Sandbox{
		ID: "box1", CreatedAt: now.Add(-time.Hour), LastActivityAt: now.Add(-30 * time.Minute), Labels: map[string]string{"team": "agents"},
	}, Usage: func(at time.Time) sandbox.Usage { return sandbox.Usage{At: at, CPUPercent: new(0.1)} }}
	seed.Logs = []sandbox.LogLine{{At: now.Add(-30 * time.Minute), Text: "thinking"}}
	for _, c := range change {
		c(&seed)
	}
	p.Add(seed)
	return &scene{
		p: p, fleet: fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{}), notes: notes{},
		rule: cleanup.Rule{Selector: selector.Selector{OlderThan: 10 * time.Minute}},
		world: cleanup.Environment{
			Now: time.Now, Profiles: []cleanup.Profile{{Name: "prod"}}, Limits: safety.Limits{MaxDelete: 20, MaxFraction: 25},
			Protected:  func(sandbox.Sandbox) string { return "" },
			Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() },
		},
	}
}

func (s *scene) ageOnly() *scene {
	s.world.Thresholds = func(sandbox.Sandbox) triage.Thresholds {
		return triage.DefaultThresholds().With(triage.Thresholds{AgeOnly: true})
	}
	return s
}

func (s *scene) look(t *testing.T) cleanup.Survey {
	t.Helper()
	survey, err := cleanup.TakeSurvey(t.Context(), s.fleet, s.world, s.rule)
	require.NoError(t, err)
	return survey
}

// end ends the targets and returns the one outcome.
func (s *scene) end(t *testing.T, targets []cleanup.Target) sandbox.Ending {
	t.Helper()
	run := &cleanup.Run{
		Fleet: s.fleet, Environment: s.world, Rule: s.rule, Record: &runs.Writer{Journal: s.notes}, Targets: targets, Wait: 5 * time.Second,
	}
	var all []sandbox.Ending
	for e := range run.EndTargets(t.Context()) {
		all = append(all, e)
	}
	require.Len(t, all, 1)
	return all[0]
}

// cutOff is a run over the survey that was interrupted after its first entry.
func (s *scene) cutOff(t *testing.T, change ...func(*runs.Begin)) runs.History {
	t.Helper()
	survey := s.look(t)
	begin := runs.Begin{Plan: survey.Plan("r-1").Recorded(), Guards: safety.Record(survey.Guards(s.world)), Profiles: survey.Records(hideNothing)}
	for _, c := range change {
		c(&begin)
	}
	h := runs.HistoryOf(written(t, begin))
	return h
}

func written(t *testing.T, begin runs.Begin, more ...entry) journal.Log {
	t.Helper()
	d := journal.Dir(t.TempDir())
	w, err := journal.Create(d, "r-1", time.Now)
	require.NoError(t, err)
	require.NoError(t, w.Append(runs.EntryBegin, begin))
	for _, e := range more {
		require.NoError(t, w.Append(e.kind, e.data))
	}
	require.NoError(t, w.Close())
	log, err := journal.Read(d, "r-1")
	require.NoError(t, err)
	return log
}

func (s *scene) asked() int { return len(s.p.Calls(fake.OpTerminate)) }

// kept checks that a resume leaves box1 alone, and why.
func (s *scene) kept(t *testing.T, h runs.History, outcome sandbox.Outcome, why string) {
	t.Helper()
	got := s.end(t, cleanup.ResumedTargets(h))
	assert.Equal(t, outcome, got.Outcome, got.Reason)
	assert.Contains(t, got.Reason, why)
	assert.Zero(t, s.asked())
	assert.Zero(t, s.notes[runs.EntryIntent])
}

func TestAResumeLooksForLifeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		h := s.cutOff(t)
		require.Len(t, h.Open(), 1)
		s.p.Write("box1", sandbox.LogLine{At: time.Now(), Text: "done thinking"})
		s.kept(t, h, sandbox.OutcomeChanged, "it is active")
	})
}

func TestAResumeThatCannotLookAsksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		h := s.cutOff(t)
		s.p.Break(fake.Fault{Op: fake.OpGet, Times: 1, Err: errors.New("planted")})
		s.kept(t, h, sandbox.OutcomeNotAttempted, "could not check whether")
	})
}

func TestAResumeAsksWhatIsEndingNoSecondTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{EndFor: time.Second})
		targets := cleanup.ResumedTargets(s.cutOff(t))
		targets[0].Asked = true // its intent was written
		require.NoError(t, s.p.Terminate(t.Context(), "box1", terminate()))
		got := s.end(t, targets)
		assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, got.Reason)
		assert.Equal(t, 1, s.asked(), "the request of before")
		assert.Zero(t, s.notes[runs.EntryIntent])
	})
}

// TestAResumeRepeatsWhatNobodyAcknowledgedOnce: the run was killed between its request and the answer.
// Without an answer a missing record would prove nothing for ever.
func TestAResumeRepeatsWhatNobodyAcknowledgedOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		intents int
		asked   int
		outcome sandbox.Outcome
	}{
		"once":            {1, 2, sandbox.OutcomeVerified},
		"repeated before": {2, 1, sandbox.OutcomeAccepted},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{EndFor: time.Second, After: fake.AfterMissing})
			h := s.cutOff(t)
			intent := entry{runs.EntryIntent, runs.Intent{Ref: h.Begin.Plan.Items[0].Ref, State: sandbox.StateRunning}}
			h = runs.HistoryOf(written(t, h.Begin, slices.Repeat([]entry{intent}, tc.intents)...))
			require.NoError(t, s.p.Terminate(t.Context(), "box1", terminate()))
			got := s.end(t, cleanup.ResumedTargets(h))
			assert.Equal(t, tc.outcome, got.Outcome, got.Reason)
			assert.Equal(t, tc.asked, s.asked())
		})
	}
}

func TestARefusedRunThatWasCutOffStaysRefused(t *testing.T) {
	t.Parallel()
	s := oneOld(fake.Options{})
	s.world.Limits.MaxDelete = 0
	h := s.cutOff(t)
	require.NotNil(t, h.Conclusion, "the guards of its first entry say so")
	assert.True(t, h.Conclusion.Refused)
	assert.False(t, h.Resumable())
}

func TestAResumeLeavesOutWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		h := s.cutOff(t, func(b *runs.Begin) { b.Profiles[0].Complete, b.Profiles[0].Error = false, "page 2 failed" })
		assert.Empty(t, h.Open())
		s.kept(t, h, sandbox.OutcomeNotAttempted, "")
		require.Error(t, cleanup.SurveyOf(h, s.rule, time.Now()).Verdict(nil), "a profile was not seen whole")
		assert.Empty(t, cleanup.SurveyOf(h, s.rule, time.Now()).Succeeded(nil))
	})
}

func TestAPlanEndsNothingThatTheListDoesNotShow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		plan := s.look(t).Plan("r-1")
		s.p.Break(fake.Fault{Op: fake.OpList, Skip: true})
		got := s.end(t, s.look(t).TargetsWithin(plan))
		assert.Equal(t, sandbox.OutcomeChanged, got.Outcome, got.Reason)
		assert.Zero(t, s.asked(), "no guard has counted it")
	})
}

func TestLifeOfAMomentAgoIsLife(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"in this moment": time.Millisecond, "by a clock that is ahead": time.Minute} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{}, func(seed *fake.Seed) {
				seed.Logs = []sandbox.LogLine{{At: time.Now().Add(when), Text: "thinking"}}
			}).ageOnly()
			survey := s.look(t)
			require.Empty(t, survey.Selected, "age-only is for what is not known")
			assert.Equal(t, cleanup.KeepAlive, survey.Kept[0].KeepReason)
		})
	}
}

func TestAClockThatIsBehindMakesNothingSilentOrOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		behind := fake.Options{Skew: -90 * time.Second}
		s := oneOld(behind, func(seed *fake.Seed) { seed.Sandbox.LastActivityAt = time.Now().Add(-95 * time.Second) })
		assert.Equal(t, cleanup.KeepAlive, s.look(t).Kept[0].KeepReason, "five seconds of silence")
		s = oneOld(behind, func(seed *fake.Seed) { seed.Sandbox.CreatedAt = time.Now().Add(-11 * time.Minute) })
		assert.Equal(t, cleanup.KeepNotSelected, s.look(t).Kept[0].KeepReason, "nine and a half minutes old")
	})
}

func terminate() providers.TerminateOptions { return providers.TerminateOptions{} }

// TestAResumeEndsNothingThatNoGuardHasCounted: a plan was applied while the list was empty,
// and the run was interrupted before it recorded that it leaves everything.
func TestAResumeEndsNothingThatNoGuardHasCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		plan := s.look(t).Plan("r-1")
		s.p.Break(fake.Fault{Op: fake.OpList, Skip: true})
		survey := s.look(t)
		targets := survey.TargetsWithin(plan)
		survey.Narrow(targets)
		plan.Items = []runs.Item{targets[0].Item}
		h := runs.HistoryOf(written(t, runs.Begin{Plan: plan.Recorded(), Guards: safety.Record(survey.Guards(s.world)), Profiles: survey.Records(hideNothing)}))
		s.p.Mend()
		assert.Empty(t, h.Open())
		s.kept(t, h, sandbox.OutcomeChanged, "no guard has counted it")
	})
}

// TestAPlanNamesWhatWasThere: what has changed between a plan and its run stays, also where its rule selects it again.
func TestAPlanNamesWhatWasThere(t *testing.T) {
	t.Parallel()
	for why, edit := range map[string]func(*sandbox.Sandbox){
		"another sandbox has this id now":      func(b *sandbox.Sandbox) { b.CreatedAt = b.CreatedAt.Add(time.Minute) },
		"it was running and is paused now":     func(b *sandbox.Sandbox) { b.State = sandbox.StatePaused },
		"it has another owner now":             func(b *sandbox.Sandbox) { b.Labels = map[string]string{sandbox.LabelOwner: "ann"} },
		"the rule no longer selects it: it is": func(b *sandbox.Sandbox) { b.LastActivityAt = time.Now() },
	} {
		bubble.Run(t, why, func(t *testing.T) {
			s := oneOld(fake.Options{})
			s.rule.IncludePaused, s.rule.Delete = true, true
			plan := s.look(t).Plan("r-1")
			s.p.Change("box1", edit)
			got := s.end(t, s.look(t).TargetsWithin(plan))
			assert.Equal(t, sandbox.OutcomeChanged, got.Outcome)
			assert.Contains(t, got.Reason, why)
			assert.Zero(t, s.asked())
		})
	}
}
