package views

import (
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// ShowCleanupPlan shows what a cleanup would do. Detailed = a plan that would end something
// is a finding. Here is the zone of this machine.
func ShowCleanupPlan(p *output.Printer, schema string, r *ops.CleanupResult, detailed bool, here *time.Location) error {
	selected, kept := []PlannedItem{}, []KeptItem{}
	for _, j := range r.Survey.Selected {
		selected = append(selected, plannedOf(j))
	}
	for _, j := range r.Survey.Kept {
		kept = append(kept, keptOf(j))
	}
	errs := r.Survey.Errs()
	verdict := r.Verdict
	if verdict == nil && detailed && len(selected) > 0 {
		verdict = fault.New(fault.KindFound, "%d sandboxes would end", len(selected)).WithHint("repeat with --yes to end them")
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
		Human: func(s *output.Sheet) { cleanupPlanPage(s, r, selected, kept, here) },
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
		says = "would end"
	}
	return p.Show(output.Document{
		Schema: schema,
		Fields: output.Fields{{Key: "explain", Value: output.Fields{
			{Key: "ref", Value: ref},
			{Key: "selected", Value: j.Selected()},
			{Key: "ground", Value: j.KeepReason},
			{Key: "reason", Value: j.Reason},
			{Key: "diagnosis", Value: Diagnosis(j.Verdict)},
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

// FinishCleanup closes the list of what a cleanup ended, with what it left.
func FinishCleanup(list *output.List[sandbox.Ending], r *ops.CleanupResult) error {
	list.Fail(r.Refused)
	list.Fail(r.Lost)
	for _, err := range r.Survey.Errs() {
		list.Fail(err)
	}
	list.Set("counts", fleet.Count(r.Endings))
	list.Set("kept", r.Survey.KeepReasons())
	list.Set("unowned", r.Survey.Unowned())
	if len(r.Survey.Errs()) == 0 {
		list.Succeeded()
	}
	return list.CloseAs(r.Verdict)
}
