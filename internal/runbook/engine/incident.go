package engine

import (
	"context"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops"
)

// joinIncident has the steps recorded in the incident that is open, and starts one where none is. A run
// without it goes on: its own record has everything.
func (r *runner) joinIncident(ctx context.Context) {
	if r.run.DryRun {
		return
	}
	start := ops.IncidentStart{Title: r.run.Title, Runbook: r.run.Runbook, Providers: r.req.Profiles, Acknowledge: r.watch.Attended(), OneOf: r.book.AlertNames()}
	if len(start.OneOf) == 1 {
		start.Alert = start.OneOf[0]
	}
	id, started, err := r.env.JoinIncident(ctx, start)
	switch {
	case fault.KindOf(err) == fault.KindUsage: // without a state directory there is none
		return
	case err != nil:
		r.watch.Warn("no incident records this run: " + err.Error())
		return
	case started:
		r.watch.Note("the incident " + id + " is open; `" + r.env.Process.Name() + " incident close` ends it")
	case r.watch.Attended():
		r.env.AcknowledgeIncident(ctx, r.watch, id)
	}
	r.record = func(s Step) {
		if s.State.IsOver() && s.State != NotSelected {
			r.env.RecordStep(ctx, r.watch, r.incidentStep(s))
		}
	}
}

func (r *runner) incidentStep(s Step) incident.Step {
	step := incident.Step{
		Run: r.run.ID, Runbook: r.run.Runbook, ID: s.ID, Title: s.Title, Kind: string(s.Kind), State: string(s.State), Verdict: string(s.Verdict),
		Text: s.Reason, ETA: s.ETA, Took: s.Took, Began: s.BeganAt, Ended: s.EndedAt,
	}
	var answers []string
	for _, a := range s.Answers {
		if a.Known {
			answers = append(answers, a.Question+" "+a.Answer)
		}
	}
	step.Answer = strings.Join(answers, "; ")
	if step.Text == "" {
		step.Text = strings.Join(s.Evidence, "; ")
	}
	return step
}

// recordCalls records who is to be called now.
func (r *runner) recordCalls(ctx context.Context) {
	if r.record == nil {
		return
	}
	for _, c := range r.run.Calls {
		if c.Verdict != "true" {
			continue
		}
		why := c.When
		if c.Text != "" {
			why += ": " + c.Text
		}
		if len(c.Evidence) > 0 {
			why += " (" + strings.Join(c.Evidence, "; ") + ")"
		}
		r.env.RecordCall(ctx, r.watch, strings.TrimSpace(c.Name+" "+c.Channel), why)
	}
}
