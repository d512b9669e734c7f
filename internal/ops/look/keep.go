package look

import (
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

func keepStats(e *ops.Env, profiles []string, r *StatsResult) {
	ev := history.Event{Verb: "stats", Providers: profiles, Figures: []history.Figure{
		{Name: ops.FigureActive, Value: r.Total.Counts.Active},
		{Name: ops.FigureStuck, Value: r.Total.Stuck},
		{Name: ops.FigureUnjudged, Value: r.Total.Unjudged},
	}}
	for _, p := range r.Providers {
		ev.Flags = append(ev.Flags, ops.KeptFlags(p.Flags, p.Provider+": ")...)
	}
	e.KeepConclusion(ev, r.Errors...)
}

// keepDiagnosis keeps what was concluded of all sandboxes. What is wrong with one alone is kept as evidence
// of it by every look.
func keepDiagnosis(e *ops.Env, r *DiagnoseResult) {
	if r.Inspected != nil || r.Task != nil {
		return
	}
	e.KeepConclusion(history.Event{
		At: r.At, Verb: "diagnose", Providers: r.Providers, Text: ops.GroupsText(r.Stuck), Flags: ops.KeptFlags(r.Flags, ""), Causes: ops.KeptCauses(r.Causes),
		Figures: []history.Figure{{Name: ops.FigureListed, Value: new(int64(r.Listed))}, {Name: ops.FigureStuck, Value: new(r.Census.Stuck)}, {Name: ops.FigureUnjudged, Value: new(r.Census.Unjudged)}},
	}, r.Errors...)
}

// keepTargets keeps a round of verify.
func keepTargets(e *ops.Env, profiles []string, r *VerifyResult) {
	ev := history.Event{At: r.At, Verb: ops.VerbVerify, Providers: profiles, Met: r.Verdict() == sandbox.True, Flags: ops.AlertChecks(r.Alerts)}
	for _, c := range r.Checks {
		check := history.Check{ID: c.ID, Title: c.Title, Verdict: c.Outcome, Target: c.Target.Sign + " " + ops.FigureText(c.Target.Bound, c.Unit), Evidence: c.Evidence}
		if c.Value != nil {
			check.Value = ops.FigureText(*c.Value, c.Unit)
		}
		ev.Targets = append(ev.Targets, check)
	}
	e.KeepConclusion(ev, r.Errors...)
}
