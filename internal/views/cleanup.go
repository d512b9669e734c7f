package views

import (
	"fmt"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// PlannedItem is one sandbox of a plan: why it goes, and how it fares.
type PlannedItem struct {
	Ref        sandbox.Ref `json:"ref"`         // PROFILE/ID.
	Name       string      `json:"name"`        // Its name; empty without one.
	TaskID     string      `json:"task_id"`     // The task it works on, from its labels.
	AgeSeconds *float64    `json:"age_seconds"` // How old it is.
	Reason     string      `json:"reason"`      // Why it is selected.

	Suspicion
}

// KeptItem is one that would be left alone, and on what ground.
type KeptItem struct {
	Ref         sandbox.Ref `json:"ref"`    // PROFILE/ID.
	Reason      string      `json:"reason"` // Why it is kept.
	KeptBecause string      `json:"ground"` // Why it is kept, in one fixed word.

	Suspicion
}

// Suspicion is the judgement of a sandbox in a plan.
type Suspicion struct {
	Stuck      sandbox.Verdict     `json:"stuck"`      // Whether it is stuck.
	Cause      *sandbox.Cause      `json:"cause"`      // Why it is stuck.
	Confidence *sandbox.Confidence `json:"confidence"` // How sure that is.
	Looked     bool                `json:"looked"`     // True: the sandbox itself was asked. False: only its record was read.
}

func suspicionOf(v triage.Verdict) Suspicion {
	return Suspicion{v.Stuck, orNil(v.Cause), confidenceOf(v), v.Looked}
}

// CleanupKeys are the keys of cleanup beside its items.
type CleanupKeys struct {
	RunID   string                     `json:"run_id,omitzero"`  // The run; `sbx cleanup show` shows it.
	Counts  *fleet.Counts              `json:"counts,omitzero"`  // What became of all.
	Kept    map[cleanup.KeepReason]int `json:"kept,omitzero"`    // How many were kept, by reason.
	Unowned map[string]int             `json:"unowned,omitzero"` // How many are not yours, by profile.
	Plan    *CleanupPlanItem           `json:"plan,omitzero"`    // What would be done.
	Explain *ExplanationItem           `json:"explain,omitzero"` // The checks of the sandbox that --explain names.
}

// CleanupPlanItem is what a cleanup would do.
type CleanupPlanItem struct {
	RunID    string         `json:"run_id"`   // The run that it would be.
	Cutoff   *time.Time     `json:"cutoff"`   // Sandboxes created before this are selected; null where age does not choose.
	Selected []PlannedItem  `json:"selected"` // What would be ended.
	Kept     []KeptItem     `json:"kept"`     // What would be left alone.
	Unjudged int            `json:"unjudged"` // How many could not be judged, and are kept.
	Guards   []GuardItem    `json:"guards"`   // The limits of the run.
	Unowned  map[string]int `json:"unowned"`  // How many are not yours, by profile.
}

// ExplanationItem says what each check of a cleanup makes of one sandbox.
type ExplanationItem struct {
	Ref         string         `json:"ref"`       // PROFILE/ID.
	Selected    bool           `json:"selected"`  // True: the run would end it.
	KeptBecause string         `json:"ground"`    // Why it is kept, in one fixed word; empty where it is selected.
	Reason      string         `json:"reason"`    // Why, in words.
	Diagnosis   DiagnosisItem  `json:"diagnosis"` // The judgement.
	Checks      []cleanup.Step `json:"checks"`    // The checks in their order.
	Evidence    []EvidenceItem `json:"evidence"`  // What was seen.
}

// plannedOf is a judged sandbox as one that would end.
func plannedOf(j cleanup.Judgement, now time.Time) PlannedItem {
	v, s := j.Verdict, j.Sandbox
	return PlannedItem{s.Ref(), s.Name, s.TaskID, ageSeconds(s, now), j.Reason, suspicionOf(v)}
}

// keptOf is a judged sandbox as one that would stay.
func keptOf(j cleanup.Judgement) KeptItem {
	return KeptItem{j.Sandbox.Ref(), j.Reason, string(j.KeepReason), suspicionOf(j.Verdict)}
}

// ShowCleanupPlan shows what a cleanup would do. With detailed, a plan that would end something
// is a finding; here is this machine's zone.
func ShowCleanupPlan(p *output.Printer, schema string, r *end.CleanupResult, detailed bool, here *time.Location) error {
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
		Fields: append(output.FieldsOf(CleanupKeys{Plan: &CleanupPlanItem{
			RunID: r.RunID, Cutoff: output.Time(r.Survey.Cutoff()), Selected: selected, Kept: kept, Unjudged: r.Survey.Unjudged(),
			Guards: guardItems(r.Guards), Unowned: r.Survey.Unowned(),
		}}), output.Field{Key: "complete", Value: len(errs) == 0}),
		Human: func(s *output.Sheet) { cleanupPlanPage(s, r, here, false) },
		Wide:  func(s *output.Sheet) { cleanupPlanPage(s, r, here, true) },
	}, verdict, errs...)
}

// ShowCleanupExplanation shows what each check makes of the sandbox that a word names.
func ShowCleanupExplanation(p *output.Printer, schema string, r *end.CleanupResult, word string) error {
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
		Fields: output.FieldsOf(CleanupKeys{Explain: &ExplanationItem{
			Ref: ref.String(), Selected: j.Selected(), KeptBecause: string(j.KeepReason), Reason: j.Reason,
			Diagnosis: diagnosisOf(j.Verdict), Checks: j.Steps, Evidence: EvidenceList(j.Evidence),
		}}),
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
func FinishCleanup(list *output.List[sandbox.Ending], r *end.CleanupResult, program, retry string) error {
	list.Fail(r.Refused)
	list.Fail(r.Unowned)
	list.Fail(r.Lost)
	for _, err := range r.Survey.Errs() {
		list.Fail(err)
	}
	if len(r.Endings) > 0 {
		list.Remark(RunSummary(r.Endings, r.Took, r.RunID, program, retry))
	}
	list.Set(CleanupKeys{Counts: new(fleet.Count(r.Endings)), Kept: r.Survey.KeepReasons(), Unowned: r.Survey.Unowned()})
	if len(r.Survey.Errs()) == 0 {
		list.Succeeded()
	}
	return list.CloseAs(r.Verdict)
}
