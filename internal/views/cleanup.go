package views

import (
	"fmt"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// PlannedItem is one sandbox of a plan: why it goes or stays, and how it fares.
type PlannedItem struct {
	Ref        sandbox.Ref     `json:"ref"`
	Name       string          `json:"name"`
	TaskID     string          `json:"task_id"`
	AgeSeconds any             `json:"age_seconds"`
	Reason     string          `json:"reason"`
	Stuck      sandbox.Verdict `json:"stuck"`
	Cause      any             `json:"cause"`
	Confidence any             `json:"confidence"`
	Looked     bool            `json:"looked"`
}

// KeptItem is one sandbox that stays, and on what ground.
type KeptItem struct {
	Ref        sandbox.Ref        `json:"ref"`
	Reason     string             `json:"reason"`
	Ground     cleanup.KeepReason `json:"ground"`
	Stuck      sandbox.Verdict    `json:"stuck"`
	Cause      any                `json:"cause"`
	Confidence any                `json:"confidence"`
	Looked     bool               `json:"looked"`
}

// plannedOf is a judged sandbox as one that would end.
func plannedOf(j cleanup.Judgement, now time.Time) PlannedItem {
	v, s := j.Verdict, j.Sandbox
	return PlannedItem{s.Ref(), s.Name, s.TaskID, ageSeconds(s, now), j.Reason, v.Stuck, TextOrNil(string(v.Cause)), confidenceOf(v), v.Looked}
}

// keptOf is a judged sandbox as one that would stay.
func keptOf(j cleanup.Judgement) KeptItem {
	v := j.Verdict
	return KeptItem{j.Sandbox.Ref(), j.Reason, j.KeepReason, v.Stuck, TextOrNil(string(v.Cause)), confidenceOf(v), v.Looked}
}

// ShowCleanupPlan shows what a cleanup would do. With detailed, a plan that would end something
// is a finding; here is this machine's zone.
func ShowCleanupPlan(p *output.Printer, schema string, r *ops.CleanupResult, detailed bool, here *time.Location) error {
	selected, kept := []PlannedItem{}, []KeptItem{}
	for _, j := range r.Survey.Selected {
		selected = append(selected, plannedOf(j, r.Survey.At))
	}
	for _, j := range r.Survey.Kept {
		kept = append(kept, keptOf(j))
	}
	errs := r.Survey.Errs()
	verdict := r.Verdict
	if verdict == nil && detailed && len(selected) > 0 {
		verdict = fault.New(fault.KindFound, "%d sandboxes would be terminated", len(selected)).WithHint("repeat with --yes to terminate them")
	}
	return p.ShowAs(output.Document{
		Schema: schema,
		Fields: output.Fields{{Key: "plan", Value: output.Fields{
			{Key: "run_id", Value: r.RunID},
			{Key: "cutoff", Value: output.Time(r.Survey.Cutoff())},
			{Key: "selected", Value: selected},
			{Key: "kept", Value: kept},
			{Key: "unjudged", Value: r.Survey.Unjudged()},
			{Key: "guards", Value: r.Guards},
			{Key: "unowned", Value: r.Survey.Unowned()},
		}}, {Key: "complete", Value: len(errs) == 0}},
		Human: func(s *output.Sheet) { cleanupPlanPage(s, r, here, false) },
		Wide:  func(s *output.Sheet) { cleanupPlanPage(s, r, here, true) },
	}, verdict, errs...)
}

// ShowCleanupExplanation shows what each check makes of the sandbox that a word names.
func ShowCleanupExplanation(p *output.Printer, schema string, r *ops.CleanupResult, word string) error {
	j, err := r.Find(word)
	if err != nil {
		return err
	}
	ref := j.Sandbox.Ref()
	says := "would stay: " + string(j.KeepReason)
	if j.Selected() {
		says = "would be terminated"
	}
	return p.Show(output.Document{
		Schema: schema,
		Fields: output.Fields{{Key: "explain", Value: output.Fields{
			{Key: "ref", Value: ref},
			{Key: "selected", Value: j.Selected()},
			{Key: "ground", Value: j.KeepReason},
			{Key: "reason", Value: j.Reason},
			{Key: "diagnosis", Value: diagnosisOf(j.Verdict)},
			{Key: "checks", Value: j.Steps},
			{Key: "evidence", Value: EvidenceList(j.Evidence)},
		}}},
		Human: func(s *output.Sheet) {
			s.Text(fmt.Sprintf("%s %s: %s\n", ref, says, j.Reason))
			rows := make([][]any, len(j.Steps))
			for i, t := range j.Steps {
				rows[i] = []any{t.Check, t.Says, t.Reason}
			}
			s.Table([]string{"check", "says", "why"}, rows)
		},
	}, r.Survey.Errs()...)
}

// FinishCleanup closes the list of what a cleanup ended, with what it left. Program is what sbx
// is called, retry the command line that goes on with what is left.
func FinishCleanup(list *output.List[sandbox.Ending], r *ops.CleanupResult, program, retry string) error {
	list.Fail(r.Refused)
	list.Fail(r.Lost)
	for _, err := range r.Survey.Errs() {
		list.Fail(err)
	}
	if len(r.Endings) > 0 {
		list.Remark(RunSummary(r.Endings, r.Took, r.RunID, program, retry))
	}
	list.Set("counts", fleet.Count(r.Endings))
	list.Set("kept", r.Survey.KeepReasons())
	list.Set("unowned", r.Survey.Unowned())
	if len(r.Survey.Errs()) == 0 {
		list.Succeeded()
	}
	return list.CloseAs(r.Verdict)
}
