package cleanup_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// ground is why box1 stays; KeepNone = it goes.
func (s *scene) ground(t *testing.T) cleanup.KeepReason {
	t.Helper()
	survey := s.look(t)
	if len(survey.Selected) == 1 {
		return cleanup.KeepNone
	}
	require.Len(t, survey.Kept, 1)
	return survey.Kept[0].KeepReason
}

func TestStatesThatAnEndWouldNotChange(t *testing.T) {
	t.Parallel()
	type rule = cleanup.Rule
	for name, tc := range map[string]struct {
		state sandbox.State
		rule  rule
		want  cleanup.KeepReason
	}{
		"on its way":             {sandbox.StateTerminating, rule{}, cleanup.KeepEnding},
		"on its way, delete":     {sandbox.StateTerminating, rule{Delete: true}, cleanup.KeepEnding},
		"stopped":                {sandbox.StateStopped, rule{}, cleanup.KeepNeedsDelete},
		"stopped, delete":        {sandbox.StateStopped, rule{Delete: true}, cleanup.KeepNone},
		"paused":                 {sandbox.StatePaused, rule{}, cleanup.KeepPaused},
		"paused, delete":         {sandbox.StatePaused, rule{Delete: true}, cleanup.KeepPaused},
		"paused, asked for":      {sandbox.StatePaused, rule{IncludePaused: true}, cleanup.KeepNeedsDelete},
		"paused, both":           {sandbox.StatePaused, rule{IncludePaused: true, Delete: true}, cleanup.KeepNone},
		"ended":                  {sandbox.StateTerminated, rule{}, cleanup.KeepEnded},
		"ended, delete":          {sandbox.StateTerminated, rule{Delete: true}, cleanup.KeepNone},
		"a word nobody knows":    {sandbox.StateUnknown, rule{Delete: true}, cleanup.KeepStateUnknown},
		"still coming to be":     {sandbox.StateProvisioning, rule{}, cleanup.KeepNone},
		"running, old and quiet": {sandbox.StateRunning, rule{}, cleanup.KeepNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{}, func(seed *fake.Seed) { seed.Sandbox.State = tc.state })
			tc.rule.Selector = s.rule.Selector
			s.rule = tc.rule
			assert.Equal(t, tc.want, s.ground(t))
		})
	}
}

// TestWhatHasJustEndedStays: the age of what runs no more counts from its end or its last use, where that is known.
func TestWhatHasJustEndedStays(t *testing.T) {
	t.Parallel()
	type rule = cleanup.Rule
	const limit = 10 * time.Minute
	for name, tc := range map[string]struct {
		state       sandbox.State
		ended, used time.Duration // ago; 0 = not known
		rule        rule
		want        cleanup.KeepReason
	}{
		"a moment ago":               {sandbox.StateFailed, 10 * time.Second, 0, rule{Delete: true}, cleanup.KeepNotSelected},
		"not over the age":           {sandbox.StateTerminated, limit, 0, rule{Delete: true}, cleanup.KeepNotSelected},
		"over the age":               {sandbox.StateTerminated, limit + time.Second, 0, rule{Delete: true}, cleanup.KeepNone},
		"not known":                  {sandbox.StateStopped, 0, 0, rule{Delete: true}, cleanup.KeepNone},
		"stopped, used a moment ago": {sandbox.StateStopped, 0, 10 * time.Second, rule{Delete: true}, cleanup.KeepNotSelected},
		"ended long ago, used later": {sandbox.StateStopped, time.Hour, time.Minute, rule{Delete: true}, cleanup.KeepNotSelected},
		"paused, used a moment ago":  {sandbox.StatePaused, 0, 10 * time.Second, rule{Delete: true, IncludePaused: true}, cleanup.KeepNotSelected},
		"failed, with an own age":    {sandbox.StateFailed, 2 * time.Minute, 0, rule{Delete: true, FailedOlderThan: time.Minute}, cleanup.KeepNone},
		"failed, of any age":         {sandbox.StateFailed, 2 * time.Second, 0, rule{Delete: true, IncludeFailed: true}, cleanup.KeepNone},
		"age alone is enough":        {sandbox.StateFailed, 10 * time.Second, 0, rule{Delete: true, IgnoreActivity: true}, cleanup.KeepNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{}, func(seed *fake.Seed) {
				seed.Sandbox.State = tc.state
				if tc.ended > 0 {
					seed.Sandbox.EndedAt = time.Now().Add(-tc.ended)
				}
				if tc.used > 0 {
					seed.Sandbox.LastActivityAt = time.Now().Add(-tc.used)
				}
			})
			tc.rule.Selector = s.rule.Selector
			tc.rule.Selector.OlderThan = limit
			s.rule = tc.rule
			assert.Equal(t, tc.want, s.ground(t))
			if tc.rule = (rule{Delete: true, IncludePaused: true, Selector: selector.Selector{Before: time.Now().Add(-2 * time.Minute)}}); tc.used == time.Minute {
				s.rule = tc.rule
				assert.Equal(t, cleanup.KeepNotSelected, s.ground(t), "a moment counts as an age does")
			}
			if tc.rule = (rule{Delete: true, IncludePaused: true, Selector: selector.Selector{Name: "*"}}); tc.ended == 10*time.Second && !s.rule.IgnoreActivity {
				s.rule = tc.rule
				assert.Equal(t, cleanup.KeepNotSelected, s.ground(t), "without an age the silence of a running one counts")
			}
		})
	}
}

// TestAnEndThatIsNotListedIsRead of the record of what the rule selects.
func TestAnEndThatIsNotListedIsRead(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration]cleanup.KeepReason{10 * time.Second: cleanup.KeepNotSelected, time.Hour: cleanup.KeepNone} {
		synctest.Test(t, func(t *testing.T) {
			s := oneOld(fake.Options{EndsUnlisted: true}, func(seed *fake.Seed) {
				seed.Sandbox.State, seed.Sandbox.EndedAt = sandbox.StateFailed, time.Now().Add(-ago)
			})
			s.rule.Delete = true
			assert.Equal(t, want, s.ground(t))
		})
	}
}

// TestASignFromTheFarFutureIsNoLife: a clock may be a little ahead; a time beyond that is
// ignored.
func TestASignFromTheFarFutureIsNoLife(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ahead := func(d time.Duration) *scene {
			return oneOld(fake.Options{}, func(seed *fake.Seed) {
				seed.Logs = []sandbox.LogLine{{At: time.Now().Add(d), Text: "thinking"}}
			})
		}
		assert.Equal(t, cleanup.KeepAlive, ahead(safety.MaxSkew-time.Minute).ageOnly().ground(t))
		assert.NotEqual(t, cleanup.KeepAlive, ahead(time.Hour).ageOnly().ground(t))
	})
}

func TestAPlanOfWhatHasEndedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		plan := s.look(t).Plan("r-1")
		require.NoError(t, s.p.Terminate(t.Context(), "box1", terminate()))
		got := s.end(t, s.look(t).TargetsWithin(plan))
		assert.Equal(t, sandbox.OutcomeAlreadyGone, got.Outcome, got.Reason)
	})
}

// TestATargetKeepsWhatWasSeenOfItself when others leave the survey: with the observation of
// another one, an active sandbox would look silent.
func TestATargetKeepsWhatWasSeenOfItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		plan := s.look(t).Plan("r-1")
		now := time.Now()
		s.p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "box0", CreatedAt: now.Add(-2 * time.Hour), LastActivityAt: now.Add(-time.Hour)}})
		survey := s.look(t)
		require.Len(t, survey.Selected, 2)
		targets := survey.TargetsWithin(plan)
		survey.Narrow(targets)
		require.Len(t, targets, 1)
		assert.Equal(t, "box1", targets[0].Seen.Sandbox.ID)
		assert.Equal(t, sandbox.OutcomeVerified, s.end(t, targets).Outcome)
	})
}

// TestAnEditedPlanKeepsToTheFlags: the rules of the flags also hold for a rule in a file.
func TestAnEditedPlanKeepsToTheFlags(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, edit := range map[string]func(*cleanup.Plan){
		"a state that is none":     func(p *cleanup.Plan) { p.Rule.Selector.States = []sandbox.State{"everything"} },
		"a broken pattern":         func(p *cleanup.Plan) { p.Rule.Selector.Name = "[" },
		"a label without a key":    func(p *cleanup.Plan) { p.Rule.Selector.Labels = []selector.Label{{Values: []string{"x"}}} },
		"ages with nothing inside": func(p *cleanup.Plan) { p.Rule.Selector.YoungerThan = time.Minute },
		"a window that is closed":  func(p *cleanup.Plan) { p.Rule.Selector.After, p.Rule.Selector.Before = now, now },
		"the first N":              func(p *cleanup.Plan) { p.Rule.Selector.Limit = 3 },
		"no selector":              func(p *cleanup.Plan) { p.Rule.Selector = selector.Selector{} },
		"no profile":               func(p *cleanup.Plan) { p.Items[0].Ref.Provider = "" },
		"an id that is none":       func(p *cleanup.Plan) { p.Items[0].Ref.ID = ".." },
	} {
		plan := cleanup.Plan{
			Schema: cleanup.PlanSchema, MadeAt: now, Rule: cleanup.Rule{Selector: selector.Selector{OlderThan: 10 * time.Minute}},
			Items: []runs.Item{{Ref: sandbox.Ref{Provider: "prod", ID: "box1"}}},
		}
		require.NoError(t, plan.Check(now, time.Hour))
		edit(&plan)
		assert.Equal(t, fault.KindUsage, fault.KindOf(plan.Check(now, time.Hour)), name)
	}
}

// TestAResumeReopensARun: it counts as interrupted until it has ended again.
func TestAResumeReopensARun(t *testing.T) {
	t.Parallel()
	s := oneOld(fake.Options{})
	begin := runs.Begin{Plan: s.look(t).Plan("r-1").Recorded(), Profiles: s.look(t).Records(hideNothing)}
	end := runs.Conclusion{ExitCode: 3, Succeeded: []string{}}
	h := runs.HistoryOf(written(t, begin, entry{runs.EntryConclusion, end}))
	assert.Equal(t, 3, h.ExitCode())
	assert.False(t, h.EndedAt.IsZero())
	h = runs.HistoryOf(written(t, begin, entry{runs.EntryConclusion, end}, entry{runs.EntryResume, runs.Actor{Who: "ann"}}))
	assert.Equal(t, -1, h.ExitCode())
	assert.True(t, h.EndedAt.IsZero())
	assert.Equal(t, "ann", h.Resumed[0].Who)
}

func hideNothing(text string) string { return text }

// memo is a journal whose entries can be inspected.
type memo struct {
	intents []runs.Intent
	results []runs.Result
}

func (m *memo) Append(_ string, data any) error {
	switch entry := data.(type) {
	case runs.Intent:
		m.intents = append(m.intents, entry)
	case runs.Result:
		m.results = append(m.results, entry)
	}
	return nil
}

// run is one over the scene; "hunter2" is a secret.
func (s *scene) run(j runs.Journal) *cleanup.Run {
	return &cleanup.Run{
		Fleet: s.fleet, Environment: s.world, Rule: s.rule, Wait: 5 * time.Second,
		Record: &runs.Writer{Journal: j, Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }},
	}
}

// TestNoSecretReachesTheJournal from errors of a provider.
func TestNoSecretReachesTheJournal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		targets := s.look(t).Targets()
		s.p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "the key hunter2 may not")})
		m := &memo{}
		run := s.run(m)
		run.Targets = targets
		for e := range run.EndTargets(t.Context()) {
			assert.Contains(t, e.Reason, "hunter2", "printing hides it by itself")
		}
		s.p.Mend()
		left := cleanup.Survey{Shares: []cleanup.Share{{Profile: "prod", Err: fault.New(fault.KindAuth, "the key hunter2 may not")}}}
		assert.Equal(t, "the key *** may not", left.Records(run.Record.Redact)[0].Error)
		s.p.Break(fake.Fault{Op: fake.OpGet, Err: fault.New(fault.KindAuth, "the key hunter2 may not")})
		_, err := run.RunProviderCleanup(t.Context(), "prod", true)
		require.NoError(t, err)
		require.Len(t, m.results, 2)
		for _, result := range m.results {
			assert.Contains(t, result.Reason, "the key *** may not")
		}
	})
}

// TestAnInterruptionGoesBeforeWhatWasLeftOut in the exit code.
func TestAnInterruptionGoesBeforeWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	s := cleanup.Survey{Shares: []cleanup.Share{{Profile: "prod"}, {Profile: "other", Err: fault.New(fault.KindUnavailable, "503")}}}
	ending := func(kind fault.Kind) []sandbox.Ending {
		return []sandbox.Ending{{Ref: sandbox.Ref{Provider: "prod", ID: "box1"}, Outcome: sandbox.OutcomeNotAttempted, Err: fault.New(kind, "it ended")}}
	}
	assert.Equal(t, fault.KindPartial, fault.KindOf(cleanup.Survey{}.Verdict([]sandbox.Ending{{Outcome: sandbox.OutcomeChanged}})), "all that was selected")
	require.NoError(t, cleanup.Survey{}.Verdict([]sandbox.Ending{{Outcome: sandbox.OutcomeChanged}, {Outcome: sandbox.OutcomeVerified}}))
	assert.Equal(t, fault.KindCanceled, fault.KindOf(s.Verdict(ending(fault.KindCanceled))))
	assert.Equal(t, fault.KindPartial, fault.KindOf(s.Verdict(ending(fault.KindAuth))))
}

// TestWhatAnIntentKeepsOfTheOutput: its last lines, cut in length, and no secret.
func TestWhatAnIntentKeepsOfTheOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{}, func(seed *fake.Seed) {
			at := seed.Logs[0].At
			seed.Logs = nil
			for range 60 {
				seed.Logs = append(seed.Logs, sandbox.LogLine{At: at, Text: "key hunter2"})
			}
			seed.Logs = append(seed.Logs, sandbox.LogLine{At: at, Text: strings.Repeat("x", 10_000)})
		})
		m := &memo{}
		run := s.run(m)
		run.Targets = s.look(t).Targets()
		for range run.EndTargets(t.Context()) {
			continue
		}
		require.Len(t, m.intents, 1)
		logs := m.intents[0].Logs
		assert.Len(t, logs, 50)
		assert.Equal(t, "key ***", logs[0])
		assert.Less(t, len(logs[49]), 3000)
	})
}

func TestAProvidersCleanupNeedsAWholeList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{})
		s.p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		_, err := s.run(s.notes).RunProviderCleanup(t.Context(), "prod", true)
		require.Error(t, err)
		assert.Empty(t, s.p.Calls(fake.OpCleanup), "who is protected is not known")
	})
}

func TestCountsOfAHistory(t *testing.T) {
	t.Parallel()
	s := oneOld(fake.Options{})
	assert.Equal(t, fleet.Counts{Selected: 1, NotAttempted: 1}, s.cutOff(t).Counts())
	h := runs.History{Sums: &fleet.Counts{Selected: 7, Verified: 7}}
	assert.Equal(t, 7, h.Counts().Selected, "of another host, of which only sums are known")
}

// entry is one that follows the first.
type entry struct {
	kind string
	data any
}

// TestSilenceIsJudgedByTheThresholdOfTheSandbox, as every look judges it: box1 was active 30 minutes ago.
func TestSilenceIsJudgedByTheThresholdOfTheSandbox(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		threshold, idleFor time.Duration
		want               cleanup.KeepReason
	}{
		"the default":                         {time.Minute, 0, cleanup.KeepNone},
		"a threshold that is longer":          {time.Hour, 0, cleanup.KeepAlive},
		"--idle-for is longer":                {time.Minute, time.Hour, cleanup.KeepAlive},
		"--idle-for is shorter on purpose":    {time.Hour, time.Minute, cleanup.KeepNone},
		"a threshold that is shorter, and so": {time.Second, 0, cleanup.KeepNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{})
			s.world.Thresholds = func(sandbox.Sandbox) triage.Thresholds {
				return triage.DefaultThresholds().With(triage.Thresholds{Inactivity: tc.threshold})
			}
			s.rule.IdleFor = tc.idleFor
			assert.Equal(t, tc.want, s.ground(t))
		})
	}
}
