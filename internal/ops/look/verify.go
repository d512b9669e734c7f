package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
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
	Note     string // why a target is a default that does not fit this fleet (check.DefaultNote); it has no data then
	Evidence []sandbox.Evidence
	Hint     string // what to type where it is not met
}

// Met is whether the target counts as met: one without data does.
func (c TargetCheck) Met() sandbox.Verdict {
	if c.NoData {
		return sandbox.True
	}
	return c.Outcome
}

// Word is Met in words, as every surface shows it.
func (c TargetCheck) Word() string {
	switch {
	case c.Outcome == sandbox.True:
		return "met"
	case c.Outcome == sandbox.False:
		return "MISSED"
	case c.NoData && c.Note != "":
		return "no limit set"
	case c.NoData:
		return "no data yet"
	}
	return "not known"
}

// VerifyResult is one round of the five checks.
type VerifyResult struct {
	Checks []TargetCheck
	Errors []error       // of providers that could not be asked; their verdict is unknown
	Alerts []alert.Alert // that are pending or firing
	// Done is what was ended within EndedWithin, by what is on record. DoneErr is why not all of that could be read: then
	// there may be more.
	Done            ops.Ends
	DoneErr         error
	Stuck, Unjudged int
	Unlisted        []string // profiles that could not be listed
	// MayRun are listed nowhere, and their requested end is not proved.
	MayRun []sandbox.Ref
	// Subjects are the figures of each provider, for conditions.
	Subjects []check.Subject
	At       time.Time
	Rounds   int
}

// Verdict is true where every check passes or has no data, false where one fails, else unknown.
func (r *VerifyResult) Verdict() sandbox.Verdict {
	v := sandbox.True
	for _, c := range r.Checks {
		v = bothVerdicts(v, c.Met())
	}
	return v
}

// Err decides the exit code: a target that is missed, else a provider that failed, else a target
// of which nothing is known. Its text begins with what was done, if anything was.
func (r *VerifyResult) Err() error {
	before := ""
	if r.Done.Requested > 0 {
		before = r.State() + "; "
	}
	var missed, unknown []string
	for _, c := range r.Checks {
		switch {
		case c.Met() == sandbox.False:
			missed = append(missed, c.Title)
		case c.Met() == sandbox.Unknown:
			unknown = append(unknown, c.Title)
		}
	}
	switch {
	case len(missed) > 0:
		return fault.New(fault.KindFound, "%s%d of %d targets missed: %s", before, len(missed), len(r.Checks), strings.Join(missed, "; "))
	case len(r.Errors) > 0:
		return fault.New(fault.KindPartial, "%w", errors.Join(r.Errors...))
	case len(unknown) > 0:
		return fault.New(fault.KindUnavailable, "%s%d of %d targets not known: %s", before, len(unknown), len(r.Checks), strings.Join(unknown, "; ")).
			WithHint("--unknown-as ok|warn|crit decides what an unknown target means")
	}
	return nil
}

// Verify compares the fleet with the five targets of the runbook (R125-R129). It changes nothing.
// With UntilOK it repeats until all are met; the last round is the result. Beside an error it is
// the last complete round; nil = none is.
func Verify(ctx context.Context, env *ops.Env, req VerifyRequest, watch ops.Observer) (last *VerifyResult, err error) {
	limit := time.Now().Add(req.UntilOK)
	for round := 1; ; round++ {
		r, err := verifyOnce(ctx, env, req, watch)
		if err != nil {
			return last, err
		}
		last, r.Rounds = r, round
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
	var all []task.Figure
	defaults := &check.Subject{Limits: triage.DefaultThresholds()}
	for _, c := range check.Targets() {
		all = append(all, targetFigure(c, defaults))
	}
	return all
}

// targetFigure is the figure of a target for one provider.
func targetFigure(c check.Check, s *check.Subject) task.Figure {
	unit := task.UnitCount
	if c.Unit() == cond.UnitRatio {
		unit = task.UnitShare
	} else if c.Unit() == cond.UnitSeconds {
		unit = task.UnitSeconds
	}
	return task.Figure{ID: c.ID, Title: c.Title, Unit: unit, Value: c.Value(s), Target: task.Target{Sign: c.Sign, Bound: c.Limit(s)}}
}

func verifyOnce(ctx context.Context, e *ops.Env, req VerifyRequest, watch ops.Observer) (*VerifyResult, error) {
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
	r.Errors = ops.CauseOnce(ctx, append(r.Errors, ops.FailedLooks(judged)...))
	cleanupCheck, err := checkCleanupRuns(ctx, e)
	if err != nil {
		return nil, err
	}
	quotas := f.Quotas(ctx)
	subjects := verifySubjects(e, stats, judged, quotas)
	r.Subjects = ops.PlainSubjects(subjects)
	r.Checks = []TargetCheck{
		checkActive(e, r.Subjects), checkAges(e, stats, judged), cleanupCheck, checkTimeouts(e, r.Subjects, stats), checkQuotas(e, r.Subjects, quotas),
	}
	if req.NoDataIsUnknown {
		for i := range r.Checks {
			r.Checks[i].NoData = false
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // what is missing was not asked
	}
	if !req.NoAlerts {
		all := e.EvaluateAlerts(ctx, watch, ops.VerbVerify, "", subjects)
		r.Alerts = slices.DeleteFunc(all, func(a alert.Alert) bool { return !a.Open() })
	}
	r.addState(ctx, e, f.Names(), stats, judged)
	keepTargets(e, f.Names(), r)
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

// worstOf is a target over providers: the value and bound are those of the provider with the
// worst figure. One whose figure is not known makes the outcome unknown at best; answered says that
// it was asked, so that what is not known does not exist yet.
func worstOf(e *ops.Env, target check.Check, subjects []check.Subject, answered func(profile string) bool) TargetCheck {
	worst := targetFigure(target, &check.Subject{})
	c := TargetCheck{Outcome: sandbox.True, NoData: true}
	samples, missed := 0, false
	if len(subjects) == 0 {
		c.Outcome = sandbox.Unknown
	}
	for i := range subjects {
		s := &subjects[i]
		one := targetFigure(target, s)
		c.Outcome = bothVerdicts(c.Outcome, target.Judge(s))
		c.NoData = c.NoData && (one.Value != nil || answered(s.Provider))
		text := "not known"
		switch {
		case one.Value != nil:
			text = ops.FormatFigure(*one.Value, one.Unit)
			samples++
		case answered(s.Provider):
			text = "no data"
		}
		c.Evidence = append(c.Evidence, sandbox.Evidence{What: s.Provider, Value: text, Source: "stats", At: e.Now()})
		misses := target.Judge(s) == sandbox.False // such a one comes before what a default excuses
		if worst.Target.Bound == 0 || misses && !missed || misses == missed && one.Value != nil &&
			(worst.Value == nil || *one.Value-one.Target.Bound > *worst.Value-worst.Target.Bound) {
			worst, missed = one, misses
		}
	}
	c.Figure = worst
	c.Samples = samples
	c.NoData = c.NoData && c.Outcome == sandbox.Unknown
	return c
}

// checkActive is R125: fewer running sandboxes than under normal load.
func checkActive(e *ops.Env, subjects []check.Subject) TargetCheck {
	c := worstOf(e, check.Target("active_normal"), subjects, func(string) bool { return false })
	c.Why = "thresholds.active_normal says what normal load is"
	for i := range subjects {
		if c.Outcome == sandbox.False {
			break // another profile misses it
		}
		if note := check.Target("active_normal").DefaultNote(&subjects[i]); note != "" {
			c.Why, c.Note = subjects[i].Provider+": "+note, note
			break
		}
	}
	c.Hint = e.Process.Name() + " top"
	return c
}

// checkAges is R126: no sandbox is over its age limit, unless it is proved to be at work: the
// runbook's 10 minutes would call every long task a fault.
func checkAges(e *ops.Env, stats []fleet.ProviderStats, judged []fleet.Judged) TargetCheck {
	target, s := check.Target("none_over_age"), check.Subject{}
	c := TargetCheck{Figure: targetFigure(target, &s), Hint: e.Process.Name() + " ls --stuck"}
	var old, atWork, open, unlisted int
	for _, s := range stats {
		if s.ItemsErr != nil {
			unlisted++
			c.Evidence = append(c.Evidence, sandbox.Evidence{What: s.Provider, Value: "not listed", Source: "list", At: e.Now()})
		}
	}
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
			c.Evidence = append(
				c.Evidence,
				sandbox.Evidence{What: s.Ref().String(), Value: sandbox.FormatElapsed(age) + " old, " + j.Verdict.Reason, Source: "look", At: e.Now()},
			)
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
	if old > 0 || open+unlisted == 0 {
		s.OverAge = new(int64(old))
	}
	c.Outcome = target.Judge(&s)
	c.Why = fmt.Sprintf("of %d, %d older ones are at work, and %d could not be judged", c.Samples, atWork, open)
	return c
}

// checkCleanupRuns is R127: cleanup runs as often as it should, at every profile.
func checkCleanupRuns(ctx context.Context, e *ops.Env) (TargetCheck, error) {
	every := e.Thresholds(sandbox.Sandbox{}).CleanupEvery
	status, err := opscron.CleanupStatus(ctx, e, opscron.CleanupStatusRequest{Every: every})
	if err != nil {
		return TargetCheck{}, err
	}
	s := check.Subject{Limits: triage.Thresholds{CleanupEvery: status.Status.Every}}
	samples := 0
	if last := status.Status.LastSuccess; !last.IsZero() {
		s.CleanupSince, samples = new(max(0, e.Now().Sub(last).Seconds())), 1
	}
	c := TargetCheck{
		Figure:  targetFigure(check.Target("cleanup_recent"), &s),
		Outcome: status.Status.Verdict, Hint: e.Process.Name() + " cron check",
		Evidence: []sandbox.Evidence{{What: "cleanup", Value: status.Status.Message, Source: "journals", At: e.Now()}},
	}
	c.Samples = samples
	if c.Outcome != sandbox.False && len(status.Errors) > 0 {
		c.Outcome = sandbox.Unknown
	}
	return c, nil
}

// checkTimeouts is R128: a low share of timeouts.
func checkTimeouts(e *ops.Env, subjects []check.Subject, stats []fleet.ProviderStats) TargetCheck {
	c := worstOf(e, check.TimeoutGood(), subjects, func(profile string) bool {
		return slices.ContainsFunc(stats, func(s fleet.ProviderStats) bool { return s.Provider == profile && s.Err == nil && s.ItemsErr == nil })
	})
	c.Why = "by the provider's counters, else by the attempts of tasks, of which 20 give a rate"
	c.Hint = e.Process.Name() + " report"
	return c
}

// checkQuotas is R129: the quotas of the accounts are far from full.
func checkQuotas(e *ops.Env, subjects []check.Subject, quotas []fleet.ProviderQuota) TargetCheck {
	c := worstOf(e, check.Target("quota_free"), subjects, func(profile string) bool { return ops.QuotaOf(quotas, profile).Err == nil })
	c.Why = "limits.max_sandboxes is a quota where a provider reports none"
	c.Hint = e.Process.Name() + " doctor"
	return c
}

// keepTargets keeps a round of verify.
func keepTargets(e *ops.Env, profiles []string, r *VerifyResult) {
	ev := history.Event{At: r.At, Verb: ops.VerbVerify, Providers: profiles, Met: r.Verdict() == sandbox.True, Flags: ops.AlertChecks(r.Alerts)}
	ev.Figures = []history.Figure{{Name: ops.FigureStuck, Value: new(int64(r.Stuck))}, {Name: ops.FigureUnjudged, Value: new(int64(r.Unjudged))}}
	for _, c := range r.Checks {
		check := history.Check{
			ID: c.ID, Title: c.Title, Verdict: c.Met(), Value: c.Word(), Target: c.Target.Sign + " " + ops.FigureText(c.Target.Bound, c.Unit),
			Evidence: c.Evidence,
		}
		if c.Value != nil {
			check.Value = ops.FigureText(*c.Value, c.Unit)
		}
		ev.Targets = append(ev.Targets, check)
	}
	e.KeepConclusion(ev, r.Errors...)
}
