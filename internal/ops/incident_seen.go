package ops

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/incident"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// The figures that an incident keeps of what verbs have seen.
const (
	figureListed   = "listed"
	figureActive   = "active"
	figureStuck    = "stuck"
	figureUnjudged = "unjudged"
)

func number[T int | int64 | float64](n T) *float64 { return new(float64(n)) }

func numberOrNil(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return number(*n)
}

// sawListing keeps how many a listing has shown; of a listing with selectors that is no count of all.
func (e *Env) sawListing(profiles []string, r *ListResult) {
	e.saw(func(ev *incident.Event) {
		ev.Providers, ev.Figures = profiles, []incident.Figure{{Name: "shown", Value: number(r.Shown)}}
		if r.Counted {
			ev.Figures = append(ev.Figures, incident.Figure{Name: "shown_stuck", Value: number(r.Census.Stuck)}, incident.Figure{Name: "shown_unjudged", Value: number(r.Census.Unjudged)})
		}
	})
}

func (e *Env) sawStats(profiles []string, r *StatsResult) {
	e.saw(func(ev *incident.Event) {
		total := r.Total.Counts
		ev.Providers = profiles
		ev.Figures = []incident.Figure{
			{Name: figureActive, Value: numberOrNil(total.Active)},
			{Name: figureStuck, Value: numberOrNil(r.Total.Stuck)},
			{Name: figureUnjudged, Value: numberOrNil(r.Total.Unjudged)},
		}
		keepLook(ev, incident.Look{At: e.Now(), Kind: "stats", Providers: profiles, Figures: ev.Figures}, r.Errors)
		ev.Flags = nil
		for _, p := range r.Providers {
			ev.Flags = append(ev.Flags, seenFlags(p.Flags, p.Provider)...)
		}
		addErrors(ev, r.Errors)
	})
}

func (e *Env) sawDiagnosis(r *DiagnoseResult) {
	e.saw(func(ev *incident.Event) {
		ev.Providers, ev.Flags, ev.Causes = r.Providers, seenFlags(r.Flags, ""), seenCauses(r.Causes)
		switch {
		case r.Inspected != nil:
			ev.Text = stuckText(r.Inspected)
		case r.Task == nil:
			ev.Figures = []incident.Figure{
				{Name: figureListed, Value: number(r.Listed)}, {Name: figureStuck, Value: number(r.Census.Stuck)}, {Name: figureUnjudged, Value: number(r.Census.Unjudged)},
			}
			keepLook(ev, incident.Look{At: r.At, Kind: "diagnose", Providers: r.Providers, Figures: ev.Figures}, r.Errors)
			ev.Text = groupsText(r.Stuck)
		}
		addErrors(ev, r.Errors)
	})
}

// maxGroups bounds the groups that a text names.
const maxGroups = 5

// groupsText is "25 at local: busy_loop; 1 at prod: hung_io".
func groupsText(groups []CauseGroup) string {
	text := ""
	for i, g := range groups {
		if i == maxGroups {
			return text + fmt.Sprintf("; and %d other causes", len(groups)-i)
		}
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%d stuck at %s: %s", len(g.Refs), g.Provider, causeWord(triage.Verdict{Cause: g.Cause}))
	}
	return text
}

func stuckText(r *InspectResult) string {
	ref := r.Seen.Sandbox.Ref().String()
	switch r.Verdict.Stuck {
	case sandbox.True:
		return ref + " is stuck: " + r.Verdict.Reason
	case sandbox.False:
		return ref + " is not stuck: " + r.Verdict.Reason
	case sandbox.Unknown:
	}
	return ref + ": " + r.Verdict.Reason
}

func (e *Env) sawSandbox(r *InspectResult) {
	e.saw(func(ev *incident.Event) {
		ev.Providers, ev.Text = []string{r.Seen.Sandbox.Provider}, stuckText(r)
		ev.Flags, ev.Causes = seenFlags(r.Flags, ""), seenCauses(r.Causes)
		addErrors(ev, r.Errors)
	})
}

// sawTargets keeps a round of verify. One in which all targets are met is a mark of its own.
func (e *Env) sawTargets(r *VerifyResult) {
	e.saw(func(ev *incident.Event) {
		ev.Kind, ev.Checks, ev.Flags = incident.Seen, nil, nil
		if r.Verdict() == sandbox.True {
			ev.Kind = incident.Verified
		}
		for _, c := range r.Checks {
			check := incident.Check{ID: c.ID, Title: c.Title, Verdict: c.Outcome, Target: c.Target.Sign + " " + figureText(c.Target.Bound, c.Unit), Evidence: keptEvidence(c.Evidence)}
			if c.Value != nil {
				check.Value = figureText(*c.Value, c.Unit)
			}
			ev.Checks = append(ev.Checks, check)
		}
		for _, a := range r.Alerts {
			ev.Flags = append(ev.Flags, incident.Check{ID: a.Rule.ID, Title: incident.AlertTitle + a.Rule.Title + " at " + a.Provider, Verdict: sandbox.True, Severity: string(a.Rule.Severity), Value: string(a.State.Phase)})
		}
		addErrors(ev, r.Errors)
	})
}

// maxText bounds the text of an event that grows with each task of a verb, in bytes.
const maxText = 2000

// sawText adds a sentence to what this process has seen and done.
func (e *Env) sawText(text string) {
	e.saw(func(ev *incident.Event) {
		switch {
		case ev.Text == "":
			ev.Text = text
		case len(ev.Text) < maxText:
			ev.Text += "; " + text
		}
	})
}

func (e *Env) sawStops(results []Stopped) {
	for _, s := range results {
		text := "stop of task " + s.Word + ": "
		switch {
		case s.Err != nil:
			text += s.Err.Error()
		case s.Gone:
			text += "it will not publish, and its sandboxes are gone"
		case s.Forbidden:
			text += "it will not publish; its sandboxes were not seen to end"
		default:
			text += "it had ended before"
		}
		e.sawText(text)
	}
}

// figureText writes a figure with its unit.
func figureText(v float64, unit task.Unit) string {
	if unit == task.UnitSeconds {
		return sandbox.FormatDuration(time.Duration(v * float64(time.Second)).Round(time.Second))
	}
	return formatFigure(v, unit)
}

func (e *Env) sawUsage(profiles []string, r *TopResult) {
	e.saw(func(ev *incident.Event) {
		ev.Providers, ev.Figures = profiles, []incident.Figure{{Name: "sampled", Value: number(len(r.Usage))}}
		addErrors(ev, r.Errors)
	})
}

func (e *Env) sawCleanup(survey *cleanup.Survey, verdict error) {
	e.saw(func(ev *incident.Event) {
		ev.Providers = nil
		for _, share := range survey.Shares {
			ev.Providers = append(ev.Providers, share.Profile)
		}
		ev.Figures = []incident.Figure{
			{Name: "selected", Value: number(len(survey.Selected))}, {Name: "kept", Value: number(len(survey.Kept))}, {Name: "kept_unjudged", Value: number(survey.Unjudged())},
		}
		if verdict != nil {
			ev.Text = verdict.Error()
		}
	})
}

func (e *Env) sawRecords(plan reconcile.Plan) {
	e.saw(func(ev *incident.Event) {
		ev.Providers = nil
		for _, side := range plan.Sides {
			ev.Providers = append(ev.Providers, side.Profile)
		}
		counts := plan.Counts()
		ev.Figures = []incident.Figure{
			{Name: "records_without_sandbox", Value: number(counts[reconcile.RecordOnly])},
			{Name: "sandboxes_without_record", Value: number(counts[reconcile.RealOnly])},
			{Name: "records_that_differ", Value: number(counts[reconcile.Differs])},
		}
		addErrors(ev, plan.Errors)
	})
}

// The most that an event keeps of each list.
const (
	maxFlags    = 20
	maxCauses   = 8
	maxEvidence = 6
	maxErrors   = 10
)

// seenFlags are those that hold. Place names whose they are; "" = the flags say it.
func seenFlags(flags []triage.Flag, place string) []incident.Check {
	var all []incident.Check
	for _, f := range flags {
		if f.Verdict != sandbox.True || f.Severity == triage.Info {
			continue
		}
		title := f.Say
		if place != "" {
			title = place + ": " + title
		}
		all = append(all, incident.Check{ID: f.ID, Title: title, Verdict: f.Verdict, Severity: string(f.Severity), Evidence: keptEvidence(f.Evidence)})
	}
	return all[:min(len(all), maxFlags)]
}

func seenCauses(found []triage.Finding) []incident.Cause {
	var all []incident.Cause
	for _, f := range found[:min(len(found), maxCauses)] {
		all = append(all, incident.Cause{ID: f.ID, Title: f.Title, Confidence: f.Confidence, Score: f.Score, Coverage: f.Coverage, Evidence: keptEvidence(f.Evidence), WhyNot: f.WhyNot})
	}
	return all
}

func keptEvidence(evidence []sandbox.Evidence) []sandbox.Evidence {
	return slices.Clone(evidence[:min(len(evidence), maxEvidence)])
}

func addErrors(ev *incident.Event, errs []error) {
	for _, err := range errs {
		if len(ev.Errors) < maxErrors {
			ev.Errors = append(ev.Errors, err.Error())
		}
	}
}
