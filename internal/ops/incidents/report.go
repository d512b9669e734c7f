package incidents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// ReportIncident asks all records for what is known of a time: notes, the journals of acts, the runs of runbooks,
// tasks, events and evidence of looks, and the states of alerts.
func ReportIncident(ctx context.Context, env *ops.Env, req ReportRequest) (*IncidentReport, error) {
	s := req.Scope
	r := &IncidentReport{Scope: s, At: env.Now(), Severity: s.Severity, Alert: s.Alert, Said: slices.Clone(s.Said), Problems: slices.Clone(s.Problems)}
	if r.Severity == "" {
		r.Severity = severityOf(r.Alert)
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
	var err error
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
	return find(r.Scope.Runbook, r.Alert, cause)
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
	for _, e := range slices.Backward(r.Said) {
		if e.Milestone == m && e.Text != "" { // an acknowledgement without a text is no note
			return Moment{At: e.At, Source: "a note: " + e.Text, Who: e.Actor.Who}
		}
	}
	return Moment{}
}

// Moment is the moment of a milestone.
func (r *IncidentReport) Moment(m incident.Milestone) Moment {
	i := slices.IndexFunc(r.Moments, func(have Moment) bool { return have.Milestone == m })
	if i < 0 {
		return Moment{Milestone: m}
	}
	return r.Moments[i]
}

func (r *IncidentReport) foundMoment(m incident.Milestone) Moment {
	switch m {
	case incident.MilestoneDetected:
		return r.detected()
	case incident.MilestoneAcknowledged:
		for _, e := range r.Said {
			if e.Kind == incident.Acknowledged {
				return Moment{At: e.At, Source: "it was acknowledged", Who: e.Actor.Who}
			}
		}
		return Moment{Source: "no note says it"}
	case incident.MilestoneMitigated:
		return r.mitigated()
	case incident.MilestoneVerified:
	}
	return r.verified(r.Moment(incident.MilestoneMitigated).At)
}

func (r *IncidentReport) detected() Moment {
	switch s := r.Scope; {
	case !s.DetectedAt.IsZero():
		return Moment{At: s.DetectedAt, Source: s.DetectedBy}
	case s.Since.IsZero():
		return Moment{Source: "the start of the record cannot be read"}
	case s.ID == "":
		return Moment{At: s.Since, Source: "the beginning of the time that is reported"}
	default:
		return Moment{At: s.Since, Source: "it was begun; nothing before it is on record", Who: s.By.Who}
	}
}

func (r *IncidentReport) verified(since time.Time) Moment {
	for _, e := range r.events {
		if e.Met && !e.At.Before(since) {
			return Moment{At: e.At, Source: "sbx verify: all targets are met", Who: e.Who}
		}
	}
	return Moment{Source: "no sbx verify has met all targets since"}
}

// mitigated is when the last sandbox was seen to end by somebody who ended it. The end of a task is its own, and
// mitigates nothing.
func (r *IncidentReport) mitigated() Moment {
	if r.Scope.Since.IsZero() {
		return Moment{Source: "what was done is not listed"}
	}
	if len(r.Acts) == 0 {
		return Moment{Source: "nothing was terminated or repaired"}
	}
	var last runs.Act
	for _, a := range r.Acts {
		if a.Ends() && slices.Contains(ops.MitigatingVerbs(), a.Verb) && a.Outcome == sandbox.OutcomeVerified && a.SettledAt.After(last.SettledAt) {
			last = a
		}
	}
	if last.SettledAt.IsZero() {
		return Moment{Source: "no end by terminate, cleanup, reconcile or a runbook was verified"}
	}
	return Moment{At: last.SettledAt, Source: fmt.Sprintf("the last verified end, of %s (run %s)", last.Ref, last.Run), Who: last.Actor.Who}
}
