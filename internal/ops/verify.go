package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/alert"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// VerifyRequest says how long the checks may take to pass.
type VerifyRequest struct {
	UntilOK time.Duration // repeat until every check passes, at most so long; 0 = once
	Every   time.Duration // between two rounds
	// UnknownPasses ends the repetition also where a target is not known.
	UnknownPasses bool
	// NoDataIsUnknown reads a target without data as any other that is not known; false = as met.
	NoDataIsUnknown bool
	NoAlerts        bool // evaluate none: for a look of which nobody may be notified
}

// passes reports whether a round ends the repetition.
func (req VerifyRequest) passes(r *VerifyResult) bool {
	return r.Verdict() == sandbox.True || req.UnknownPasses && r.Verdict() == sandbox.Unknown
}

// TargetCheck is one figure beside its target, as `report` shows them, with a verdict that may
// rest on more than the figure.
type TargetCheck struct {
	task.Figure

	Outcome sandbox.Verdict // whether the target is met
	// NoData: the outcome is unknown since there is nothing to measure yet, for example no quota and too
	// few tasks, though every provider answered. It counts as met: nothing that can be done would change it.
	NoData   bool
	Evidence []sandbox.Evidence
	Hint     string // what to type where it is not met
}

// VerifyResult is one round of the five checks.
type VerifyResult struct {
	Checks []TargetCheck
	Errors []error       // of providers that could not be asked; their verdict is unknown
	Alerts []alert.Alert // that are pending or firing
	// Subjects are the figures of each provider, for conditions.
	Subjects []alert.Subject
	At       time.Time
	Rounds   int
}

// Verdict is true where every check passes or has no data, false where one fails, else unknown.
func (r *VerifyResult) Verdict() sandbox.Verdict {
	v := sandbox.True
	for _, c := range r.Checks {
		if !c.NoData {
			v = bothVerdicts(v, c.Outcome)
		}
	}
	return v
}

// Err decides the exit code: a target that is missed, else a provider that failed, else a target
// of which nothing is known.
func (r *VerifyResult) Err() error {
	var missed, unknown []string
	for _, c := range r.Checks {
		switch {
		case c.Outcome == sandbox.False:
			missed = append(missed, c.Title)
		case c.Outcome == sandbox.Unknown && !c.NoData:
			unknown = append(unknown, c.Title)
		}
	}
	switch {
	case len(missed) > 0:
		return fault.New(fault.KindFound, "%d of %d targets missed: %s", len(missed), len(r.Checks), strings.Join(missed, "; "))
	case len(r.Errors) > 0:
		return fault.New(fault.KindPartial, "%w", errors.Join(r.Errors...))
	case len(unknown) > 0:
		return fault.New(fault.KindUnavailable, "%d of %d targets not known: %s", len(unknown), len(r.Checks), strings.Join(unknown, "; ")).
			WithHint("--unknown-as ok|warn|crit decides what an unknown target means")
	}
	return nil
}

// Verify compares the fleet with the five targets of the runbook (R125-R129). It changes nothing.
// With UntilOK it repeats until all are met; the last round is the result. Beside an error it is
// the last complete round; nil = none is.
func Verify(ctx context.Context, env *Env, req VerifyRequest, watch Observer) (last *VerifyResult, err error) {
	limit := time.Now().Add(req.UntilOK)
	for round := 1; ; round++ {
		r, err := env.verifyOnce(ctx, req, watch)
		if err != nil {
			return last, err
		}
		last, r.Rounds = r, round
		env.sawTargets(r)
		if req.UntilOK <= 0 || req.passes(r) || time.Until(limit) <= 0 {
			return r, nil
		}
		watch.Note(fmt.Sprintf("%s; next round in %s, until %s", r.Err(), sandbox.FormatDuration(req.Every), limit.UTC().Format(time.TimeOnly+"Z")))
		if err := env.PauseRound(ctx, time.After(min(req.Every, max(time.Second, time.Until(limit))))); err != nil {
			return last, err
		}
	}
}

// VerifyFigures are the five figures that are compared with targets, without values; the targets
// are those of the default thresholds.
func VerifyFigures() []task.Figure {
	t := triage.DefaultThresholds()
	below := func(bound float64) task.Target { return task.Target{Sign: "<", Bound: bound} }
	return []task.Figure{
		{ID: "R125", Title: "running sandboxes at one provider", Unit: task.UnitCount, Target: below(float64(t.ActiveNormal))},
		{ID: "R126", Title: "sandboxes over their age limit and not at work", Unit: task.UnitCount, Target: task.Target{Sign: "<=", Bound: 0}},
		{ID: "R127", Title: "time since cleanup left nothing undone", Unit: task.UnitSeconds, Target: task.Target{Sign: "<=", Bound: (2 * t.CleanupEvery).Seconds()}},
		{ID: "R128", Title: "share of timeouts at one provider", Unit: task.UnitShare, Target: below(t.TimeoutRateGood)},
		{ID: "R129", Title: "use of a quota", Unit: task.UnitShare, Target: below(t.QuotaNear)},
	}
}

func verifyFigure(id string) task.Figure {
	all := VerifyFigures()
	return all[slices.IndexFunc(all, func(f task.Figure) bool { return f.ID == id })]
}

func (e *Env) verifyOnce(ctx context.Context, req VerifyRequest, watch Observer) (*VerifyResult, error) {
	f, err := e.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	progress := watch.Progress(fmt.Sprintf("asking %d providers", len(f.Names())))
	defer progress.Done()
	stats := f.Stats(ctx)
	r := &VerifyResult{At: e.Now()}
	for _, s := range stats {
		if err := errors.Join(s.Err, s.ItemsErr); err != nil {
			r.Errors = append(r.Errors, err)
		}
	}
	var items []sandbox.Sandbox
	for _, s := range stats {
		items = append(items, s.Items...)
	}
	judged := f.Judge(ctx, items, e.Judging(true, progress))
	r.Errors = causeOnce(ctx, append(r.Errors, failedLooks(judged)...))
	cleanupCheck, err := e.checkCleanupRuns(ctx)
	if err != nil {
		return nil, err
	}
	quotas := f.Quotas(ctx)
	r.Checks = []TargetCheck{e.checkActive(stats), e.checkAges(stats, judged), cleanupCheck, e.checkTimeouts(stats), e.checkQuotas(f.Names(), quotas)}
	if req.NoDataIsUnknown {
		for i := range r.Checks {
			r.Checks[i].NoData = false
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // what is missing was not asked
	}
	subjects := e.verifySubjects(ctx, stats, judged, quotas)
	r.Subjects = plainSubjects(subjects)
	if req.NoAlerts {
		return r, nil
	}
	all := e.evaluateAlerts(ctx, watch, VerbVerify, "", subjects)
	r.Alerts = slices.DeleteFunc(all, func(a alert.Alert) bool { return !a.Open() })
	return r, nil
}

// bothVerdicts is true where both are, false where one is, else unknown.
func bothVerdicts(a, b sandbox.Verdict) sandbox.Verdict {
	switch {
	case a == sandbox.False || b == sandbox.False:
		return sandbox.False
	case a == sandbox.True && b == sandbox.True:
		return sandbox.True
	}
	return sandbox.Unknown
}

// measured is a figure of one provider beside its bound.
type measured struct {
	value    *float64 // nil: not known
	bound    float64
	answered bool // the provider was asked: a value that is not known does not exist yet
}

// worstOf is a check over providers: the value and target are those of the provider with the
// worst figure. One whose figure is not known makes the outcome unknown at best.
func (e *Env) worstOf(figure task.Figure, stats []fleet.ProviderStats, of func(fleet.ProviderStats, triage.Thresholds) measured) TargetCheck {
	figure.Target.Bound = 0
	c := TargetCheck{Figure: figure, Outcome: sandbox.True, NoData: true}
	if len(stats) == 0 {
		c.Outcome = sandbox.Unknown
	}
	for _, s := range stats {
		m := of(s, e.Thresholds(sandbox.Sandbox{Provider: s.Provider, ProviderType: s.ProviderType}))
		one := figure
		one.Value, one.Target.Bound, one.Samples = m.value, m.bound, 1
		c.Outcome = bothVerdicts(c.Outcome, one.Verdict())
		c.NoData = c.NoData && (m.value != nil || m.answered)
		text := "not known"
		switch {
		case m.value != nil:
			text = formatFigure(*m.value, figure.Unit)
			c.Samples++
		case m.answered:
			text = "no data"
		}
		c.Evidence = append(c.Evidence, sandbox.Evidence{What: s.Provider, Value: text, Source: "stats", At: e.Now()})
		if c.Target.Bound == 0 || m.value != nil && (c.Value == nil || *m.value-m.bound > *c.Value-c.Target.Bound) {
			c.Value, c.Target.Bound = m.value, m.bound
		}
	}
	c.NoData = c.NoData && c.Outcome == sandbox.Unknown
	return c
}

func formatFigure(v float64, unit task.Unit) string {
	if unit == task.UnitShare {
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}

// checkActive is R125: fewer running sandboxes than under normal load.
func (e *Env) checkActive(stats []fleet.ProviderStats) TargetCheck {
	c := e.worstOf(verifyFigure("R125"), stats,
		func(s fleet.ProviderStats, t triage.Thresholds) measured {
			m := measured{bound: float64(t.ActiveNormal)}
			if s.Err == nil && s.Stats.Active != nil {
				m.value = new(float64(*s.Stats.Active))
			}
			return m
		})
	c.Why = "thresholds.active_normal says what normal load is"
	c.Hint = e.Process.Name() + " top"
	return c
}

// checkAges is R126: no sandbox is over its age limit, unless it is proved to be at work: the
// runbook's 10 minutes would call every long task a fault.
func (e *Env) checkAges(stats []fleet.ProviderStats, judged []fleet.Judged) TargetCheck {
	c := TargetCheck{
		Figure:  verifyFigure("R126"),
		Outcome: sandbox.True, Hint: e.Process.Name() + " ls --stuck",
	}
	for _, s := range stats {
		if s.ItemsErr != nil {
			c.Outcome = sandbox.Unknown
			c.Evidence = append(c.Evidence, sandbox.Evidence{What: s.Provider, Value: "not listed", Source: "list", At: e.Now()})
		}
	}
	var old, atWork, open int
	for _, j := range judged {
		s := j.Sandbox
		age, source := s.Age(e.Now())
		stuck := j.Verdict.Stuck == sandbox.True
		if s.State != sandbox.StateRunning && !stuck {
			continue
		}
		c.Samples++
		switch {
		case stuck:
			old++
			c.Evidence = append(c.Evidence, sandbox.Evidence{What: s.Ref().String(), Value: sandbox.FormatElapsed(age) + " old, " + j.Verdict.Reason, Source: "look", At: e.Now()})
		case source == sandbox.AgeUnknown:
			open++
		case age <= e.Thresholds(s).StuckAge:
		case j.Verdict.Stuck == sandbox.Unknown:
			open++
		default:
			atWork++
		}
	}
	c.Value = new(float64(old))
	switch {
	case old > 0:
		c.Outcome = sandbox.False
	case open > 0:
		c.Outcome = sandbox.Unknown
	}
	c.Why = fmt.Sprintf("of %d, %d older ones are at work, and %d could not be judged", c.Samples, atWork, open)
	return c
}

// checkCleanupRuns is R127: cleanup runs as often as it should, at every profile.
func (e *Env) checkCleanupRuns(ctx context.Context) (TargetCheck, error) {
	every := e.Thresholds(sandbox.Sandbox{}).CleanupEvery
	status, err := CleanupStatus(ctx, e, CleanupStatusRequest{Every: every})
	if err != nil {
		return TargetCheck{}, err
	}
	return e.checkCleanupStatus(status), nil
}

// checkCleanupStatus is R127 by the state of cleanup.
func (e *Env) checkCleanupStatus(status *CleanupStatusResult) TargetCheck {
	c := TargetCheck{
		Figure:  verifyFigure("R127"),
		Outcome: status.Status.Verdict, Hint: e.Process.Name() + " cron check",
		Evidence: []sandbox.Evidence{{What: "cleanup", Value: status.Status.Message, Source: "journals", At: e.Now()}},
	}
	c.Target.Bound = (2 * status.Status.Every).Seconds()
	if last := status.Status.LastSuccess; !last.IsZero() {
		c.Value, c.Samples = new(max(0, e.Now().Sub(last).Seconds())), 1
	}
	if c.Outcome != sandbox.False && len(status.Errors) > 0 {
		c.Outcome = sandbox.Unknown
	}
	return c
}

// checkTimeouts is R128: a low share of timeouts.
func (e *Env) checkTimeouts(stats []fleet.ProviderStats) TargetCheck {
	c := e.worstOf(verifyFigure("R128"), stats,
		func(s fleet.ProviderStats, t triage.Thresholds) measured {
			return measured{s.Signals(t.StuckAge, e.Now()).TimeoutRate(), t.TimeoutRateGood, s.Err == nil && s.ItemsErr == nil}
		})
	c.Why = "by the provider's counters, else by the attempts of tasks, of which 20 give a rate"
	c.Hint = e.Process.Name() + " report"
	return c
}

// checkQuotas is R129: the quotas of the accounts are far from full.
func (e *Env) checkQuotas(profiles []string, quotas []fleet.ProviderQuota) TargetCheck {
	stats := make([]fleet.ProviderStats, len(profiles))
	for i, name := range profiles {
		stats[i].Provider = name
	}
	c := e.worstOf(verifyFigure("R129"), stats,
		func(s fleet.ProviderStats, t triage.Thresholds) measured {
			return measured{highestUse(quotas, s.Provider), t.QuotaNear, quotaOf(quotas, s.Provider).Err == nil}
		})
	c.Why = "limits.max_sandboxes is a quota where a provider reports none"
	c.Hint = e.Process.Name() + " doctor"
	return c
}
