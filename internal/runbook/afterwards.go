package runbook

import (
	"sbx/internal/ops/incidents"
)

// Afterwards is what the document asks for after an incident.
func (r *Runbook) Afterwards() incidents.ReportPlan {
	plan := incidents.ReportPlan{Runbook: string(r.Metadata.ID), Title: r.Fill(r.Metadata.Title)}
	for _, q := range r.Spec.Questions {
		question := incidents.ReportQuestion{ID: string(q.ID), Ask: r.Fill(q.Ask)}
		for _, id := range q.AnsweredBy {
			question.AnsweredBy = append(question.AnsweredBy, string(id))
		}
		plan.Questions = append(plan.Questions, question)
	}
	for _, t := range r.Spec.Actions {
		plan.Tasks = append(plan.Tasks, r.reportTask(t, ""))
	}
	for _, c := range r.Spec.Causes {
		for _, t := range c.FollowUp {
			plan.Tasks = append(plan.Tasks, r.reportTask(t, string(c.PossibleCause)))
		}
	}
	return plan
}

func (r *Runbook) reportTask(t Task, cause string) incidents.ReportTask {
	return incidents.ReportTask{Title: r.Fill(t.Title), Group: string(t.Group), Where: t.Where, Cause: cause}
}
