package look

import (
	"context"
	"slices"
	"time"

	"sbx/internal/check"
	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/snapshot"
	"sbx/internal/triage"
)

// at is the environment of conclusions: it has the settings of this one, and its time stands still.
func at(e *ops.Env, now time.Time) *ops.Env {
	p := e.Process
	p.Now = func() time.Time { return now }
	return &ops.Env{
		Process: p, Version: e.Version, Types: e.Types, Config: e.Config, Input: e.Input, Program: e.Program, Fleet: e.Fleet, Only: e.Only,
		Store: e.Store, Journals: e.Journals, Endings: e.Endings, Shared: e.Shared, Alive: e.Alive, AddRunbooks: e.AddRunbooks,
	}
}

// Replayed is what a snapshot shows by the settings in force now.
type Replayed struct {
	Concluded snapshot.Concluded
	Settings  []snapshot.Setting
	Subjects  []check.Subject // the figures of each provider
}

// Replay judges a snapshot again, by the settings in force now, with the rules of a live diagnosis.
// Whom a profile owned, and what was protected, is as it was then.
func Replay(ctx context.Context, env *ops.Env, s *snapshot.Snapshot) Replayed {
	then := at(env, s.At)
	then.Once.Do(func() { then.Book = bookFor(env, s) })
	d := &diagnosis{env: then, log: s.Log.CleanupLog(), result: &DiagnoseResult{}, redact: func(text string) string { return text }}
	look := lookOf(then, s)
	if !slices.ContainsFunc(look.profiles, func(p profileLook) bool { return p.listed }) && len(look.profiles) > 0 {
		d.result.Steps = []DiagnoseStep{{InvestigationStep: triage.InvestigationStep{ID: stepStuck}, Answers: []Answer{{Text: "no provider was listed"}}}}
	}
	d.concludeFleet(ctx, look)
	return Replayed{Concluded: d.concluded(s, look), Settings: settingsOf(then, s), Subjects: d.result.Subjects}
}

// bookFor are the thresholds in force. A profile that is not configured here is judged by age alone
// if it was so then: that is a fact of its provider.
func bookFor(e *ops.Env, s *snapshot.Snapshot) triage.ThresholdBook {
	book := e.ThresholdBook()
	book.Overrides = slices.Clone(book.Overrides)
	configured := e.ConfiguredNames()
	for _, setting := range s.Settings {
		if setting.AgeOnly && !slices.Contains(configured, setting.Provider) {
			book.Overrides = append(book.Overrides, triage.Override{Profile: setting.Provider, AgentType: setting.AgentType, Set: triage.Thresholds{AgeOnly: true}})
		}
	}
	return book
}

// lookOf is what was read then, judged by the thresholds of this environment.
func lookOf(e *ops.Env, s *snapshot.Snapshot) fleetLook {
	var look fleetLook
	if c := s.Cleanup; c != nil {
		look.cleanup = opscron.JudgeCleanup(e, c.Profiles, c.CronRuns(), make([]error, c.Unreadable), e.Thresholds(sandbox.Sandbox{}).CleanupEvery)
	}
	patterns := snapshot.Patterns()
	for i := range s.Profiles {
		p := &s.Profiles[i]
		recorded, rows := recordedOf(p, patterns)
		one := profileLook{name: p.Name, stats: p.ProviderStats(rows), rows: rows, listed: p.Judged, late: p.Failed.Err()}
		if p.Judged {
			one.judged = fleet.JudgeRecorded(recorded, figuresOf(p, rows, s.At), e.Thresholds)
		}
		if quota, has := p.ProviderQuota(); has {
			look.quotas = append(look.quotas, quota)
		}
		look.profiles = append(look.profiles, one)
	}
	return look
}

func recordedOf(p *snapshot.Profile, patterns map[string]triage.Pattern) ([]fleet.Recorded, []sandbox.Sandbox) {
	recorded, rows := make([]fleet.Recorded, len(p.Sandboxes)), make([]sandbox.Sandbox, len(p.Sandboxes))
	for i := range p.Sandboxes {
		recorded[i] = p.Sandboxes[i].Recorded(p, patterns)
		rows[i] = recorded[i].Row
	}
	return recorded, rows
}

// figuresOf are those by which observations of a profile are judged.
func figuresOf(p *snapshot.Profile, rows []sandbox.Sandbox, at time.Time) *fleet.ProfileFigures {
	if p.ListFailed != nil {
		rows = nil
	}
	return fleet.NewProfileFigures(p.Records.Signals(), rows, at)
}

// recordedPlan are the sandboxes that a cleanup of stuck ones selects.
func recordedPlan(e *ops.Env, s *snapshot.Snapshot) []string {
	rule, plan, patterns := cleanup.Rule{Selector: selector.Selector{Stuck: true}}, []string{}, snapshot.Patterns()
	for i := range s.Profiles {
		p := &s.Profiles[i]
		if !p.Judged || p.ListFailed != nil {
			continue // a cleanup leaves such a profile alone
		}
		recorded, rows := recordedOf(p, patterns)
		figures := figuresOf(p, rows, s.At)
		for i, then := range recorded {
			b := &p.Sandboxes[i]
			world := cleanup.Environment{
				Now: e.Now, Thresholds: e.Thresholds, Protected: func(sandbox.Sandbox) string { return b.Protected },
				Profiles: []cleanup.Profile{{Name: p.Name, Owns: func(map[string]string) bool { return !b.NotOwned }, OwnedRule: "its owner"}},
			}
			if rule.JudgeRecorded(world, then, figures).Selected() {
				plan = append(plan, then.Row.Ref().String())
			}
		}
	}
	slices.Sort(plan)
	return plan
}
