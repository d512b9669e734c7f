package views

import (
	"fmt"
	"slices"
	"strings"
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
func plannedOf(j cleanup.Judgement) PlannedItem {
	v := j.Verdict
	return PlannedItem{j.Sandbox.Ref(), j.Reason, v.Stuck, TextOrNil(string(v.Cause)), confidenceOf(v), v.Looked}
}

// keptOf is a judged sandbox as one that would stay.
func keptOf(j cleanup.Judgement) KeptItem {
	i := plannedOf(j)
	return KeptItem{i.Ref, i.Reason, j.KeepReason, i.Stuck, i.Cause, i.Confidence, i.Looked}
}

// TimeInBothZones writes a time in UTC, and in the zone of this machine where that is another.
func TimeInBothZones(at time.Time, here *time.Location) string {
	text := at.UTC().Format("2006-01-02 15:04:05 UTC")
	if local := at.In(here); local.Format("15:04:05") != at.UTC().Format("15:04:05") {
		text += " (" + local.Format("15:04:05 MST") + " here)"
	}
	return text
}

// KeptSums sums why sandboxes stay: ": 3 protected, 5 not_selected".
func KeptSums(kept []KeptItem) string {
	n := make(map[cleanup.KeepReason]int)
	var order []cleanup.KeepReason
	for _, k := range kept {
		if n[k.Ground] == 0 {
			order = append(order, k.Ground)
		}
		n[k.Ground]++
	}
	slices.Sort(order)
	parts := make([]string, len(order))
	for i, g := range order {
		parts[i] = fmt.Sprintf("%d %s", n[g], g)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// cleanupPlanPage shows people what a cleanup would end. Here is the zone of this machine.
func cleanupPlanPage(s *output.Sheet, r *ops.CleanupResult, selected []PlannedItem, kept []KeptItem, here *time.Location) {
	s.Text("Nothing was done; this is the plan.\n")
	if at := r.Survey.Cutoff(); !at.IsZero() {
		s.Text("Old enough is what came to be before " + TimeInBothZones(at, here) + ".\n")
	}
	s.Section(fmt.Sprintf("Would end: %d", len(selected)))
	rows := make([][]any, len(selected))
	for i, e := range selected {
		rows[i] = []any{e.Ref, e.Reason}
	}
	s.Table([]string{"ref", "why"}, rows)
	s.Section(fmt.Sprintf("Would stay: %d%s", len(kept), KeptSums(kept)))
	rows = make([][]any, len(kept))
	for i, e := range kept {
		rows[i] = []any{e.Ref, e.Ground, e.Reason}
	}
	s.Table([]string{"ref", "ground", "why"}, rows)
	s.Section("Guards")
	rows = make([][]any, len(r.Guards))
	for i, g := range r.Guards {
		verdict := "ok"
		if !g.OK {
			verdict = "would refuse"
		}
		value, limit := g.Figures()
		rows[i] = []any{g.Name, limit, value, verdict}
	}
	s.Table([]string{"guard", "limit", "value", "verdict"}, rows)
	for _, text := range []string{r.UnjudgedText(), r.UnownedText()} {
		if text != "" {
			s.Text("\n" + text + ".\n")
		}
	}
}

// ShowCleanupPlan shows what a cleanup would do. With detailed, a plan that would end something
// is a finding; here is this machine's zone.
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
