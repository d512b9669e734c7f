package incidents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// ReportIncident asks all records for what is known of the time of an incident, from its detection to its
// end: its own, the journals of acts, the runs of runbooks, tasks, events and evidence of looks, and the
// states of alerts.
func ReportIncident(ctx context.Context, env *ops.Env, req ReportRequest) (*IncidentReport, error) {
	i, err := FindIncident(env, req.Word, req.Newest)
	if err != nil {
		return nil, err
	}
	r := &IncidentReport{Incident: i, At: env.Now(), Severity: i.Start.Severity, Alert: i.Start.Alert}
	if i.Problem != "" {
		r.Problems = append(r.Problems, "the record ends here, since "+i.Problem)
	}
	if err := r.readRecords(ctx, env, req.Runs); err != nil {
		return nil, err
	}
	r.addFigures()
	r.addMoments()
	r.addTimeline()
	if req.Plan == nil {
		return r, nil
	}
	if r.Plan, err = r.findPlan(req.Plan); err != nil {
		r.Problems = append(r.Problems, "the runbook cannot be read: "+err.Error())
	}
	r.answerQuestions()
	r.chooseTasks()
	return r, nil
}

func (r *IncidentReport) findPlan(find PlanFinder) (ReportPlan, error) {
	cause := ""
	if len(r.Causes) > 0 {
		cause = r.Causes[0].ID
	}
	return find(r.Incident.Start.Runbook, r.Alert, cause)
}

// addMoments finds when each milestone was reached. What a person has said wins.
func (r *IncidentReport) addMoments() {
	for _, m := range incident.Milestones() {
		moment := r.saidMoment(m)
		if moment.At.IsZero() {
			moment = r.foundMoment(m)
		}
		moment.Milestone = m
		r.Moments = append(r.Moments, moment)
	}
}

func (r *IncidentReport) saidMoment(m incident.Milestone) Moment {
	for _, e := range slices.Backward(r.Incident.Events) {
		if e.Milestone == m && e.Text != "" { // an acknowledgement without a text is no note
			return Moment{At: e.At, Source: "a note: " + e.Text, Who: e.Actor.Who}
		}
	}
	return Moment{}
}

// Moment is that of a milestone.
func (r *IncidentReport) Moment(m incident.Milestone) Moment {
	i := slices.IndexFunc(r.Moments, func(have Moment) bool { return have.Milestone == m })
	if i < 0 {
		return Moment{Milestone: m}
	}
	return r.Moments[i]
}

func (r *IncidentReport) foundMoment(m incident.Milestone) Moment {
	i := r.Incident
	switch m {
	case incident.MilestoneDetected:
		if d := i.Start.DetectedAt; !d.IsZero() {
			return Moment{At: d, Source: i.Start.DetectedBy}
		}
		if i.StartedAt.IsZero() {
			return Moment{Source: "the start of the record cannot be read"}
		}
		return Moment{At: i.StartedAt, Source: "the incident was started; nothing before it is on record", Who: i.StartedBy.Who}
	case incident.MilestoneAcknowledged:
		return r.firstSaid(incident.Acknowledged, "it was acknowledged", "nobody has acknowledged it")
	case incident.MilestoneMitigated:
		return r.mitigated()
	case incident.MilestoneVerified:
		return r.verified(r.Moment(incident.MilestoneMitigated).At)
	case incident.MilestoneClosed:
		if i.State == incident.StateEnded {
			return r.firstSaid(incident.Closed, "it was closed as "+string(i.As), "")
		}
	}
	return Moment{Source: "it is not closed"}
}

func (r *IncidentReport) firstSaid(kind incident.Kind, source, missing string) Moment {
	for _, e := range r.Incident.Events {
		if e.Kind == kind {
			return Moment{At: e.At, Source: source, Who: e.Actor.Who}
		}
	}
	return Moment{Source: missing}
}

func (r *IncidentReport) verified(since time.Time) Moment {
	for _, e := range r.events {
		if e.Met && !e.At.Before(since) {
			return Moment{At: e.At, Source: "sbx verify: all targets are met", Who: e.Who}
		}
	}
	return Moment{Source: "no sbx verify has met all targets since"}
}

// mitigated is when the last sandbox was seen to end. After an act that failed, or whose outcome is not
// known, that is not known either.
func (r *IncidentReport) mitigated() Moment {
	if r.Incident.StartedAt.IsZero() {
		return Moment{Source: "what was done is not listed"}
	}
	if len(r.Acts) == 0 {
		return Moment{Source: "nothing was terminated or repaired"}
	}
	var last cleanup.Act
	for _, a := range r.Acts {
		if a.Ends() && a.Outcome == sandbox.OutcomeVerified && a.SettledAt.After(last.SettledAt) {
			last = a
		}
	}
	if last.SettledAt.IsZero() {
		return Moment{Source: "no termination was verified"}
	}
	return Moment{At: last.SettledAt, Source: fmt.Sprintf("the last verified end, of %s (run %s)", last.Ref, last.Run), Who: last.Actor.Who}
}

// checkQuestion refuses a question that the report of an incident does not have.
func checkQuestion(ctx context.Context, env *ops.Env, req IncidentNote) error {
	question, plan := req.Question, ReportPlan{}
	r, err := ReportIncident(ctx, env, ReportRequest{Word: req.Word, Runs: req.Runs})
	if err == nil {
		plan, err = r.findPlan(req.Plan)
	}
	if err != nil {
		return fault.New(fault.KindOf(err), "the questions of the runbook cannot be read: %w", err).WithHint("a note without --answer needs no runbook")
	}
	var ids []string
	for _, q := range plan.Questions {
		ids = append(ids, q.ID)
	}
	if slices.Contains(ids, question) {
		return nil
	}
	return fault.Usage("%s asks no question %q", cmp.Or(plan.Runbook, "the runbook"), question).WithHint("%s", fault.Meant(question, ids))
}
