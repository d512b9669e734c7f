package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// ReconcileItem is one sandbox beside its record: what is planned, or with --fix what became of it.
type ReconcileItem struct {
	Ref            string          `json:"ref" table:""`                     // PROFILE/ID.
	Provider       string          `json:"provider"`                         // The profile.
	Class          string          `json:"class" table:""`                   // Where it is: both, differs, real_only or record_only.
	Cause          string          `json:"cause" table:""`                   // What is wrong: agrees for nothing.
	Action         string          `json:"action" table:""`                  // What mends it: none for nothing.
	Verdict        sandbox.Verdict `json:"verdict" table:",wide"`            // Whether it is certain enough to act.
	RecordState    *string         `json:"record_state" table:"RECORD,wide"` // The state on record.
	State          *string         `json:"state" table:",wide"`              // The state at the provider.
	AgeSeconds     *float64        `json:"age_seconds" table:"AGE,wide"`     // How old it is.
	TaskID         *string         `json:"task_id" table:"TASK,wide"`        // The task on record.
	Observations   int             `json:"observations" table:"SEEN,wide"`   // How often it was seen so.
	Reason         string          `json:"reason" table:"WHY"`               // Why.
	Diagnosis      *DiagnosisItem  `json:"diagnosis"`                        // The judgement of a running one.
	RecordEvidence []EvidenceItem  `json:"record_evidence"`                  // What the records say.
	RealEvidence   []EvidenceItem  `json:"real_evidence"`                    // What the provider says.
}

// ReconcileDoneItem is what became of one row, with --fix.
type ReconcileDoneItem struct {
	Ref             string          `json:"ref" table:""`                  // PROFILE/ID.
	Outcome         sandbox.Outcome `json:"outcome" table:""`              // What became of it, with --fix.
	Action          string          `json:"action" table:""`               // What mends it: none for nothing.
	Class           string          `json:"class" table:",wide"`           // Where it is: both, differs, real_only or record_only.
	Cause           string          `json:"cause" table:""`                // What is wrong: agrees for nothing.
	Reason          string          `json:"reason" table:""`               // Why.
	DurationSeconds *float64        `json:"duration_seconds" table:"TOOK"` // How long it took, with --fix.
	Evidence        []EvidenceItem  `json:"evidence"`                      // What the outcome was seen by, with --fix.
}

// ReconcileKeys are the keys of reconcile beside its items.
type ReconcileKeys struct {
	RunID   string               `json:"run_id,omitzero"`  // The run; `sbx cleanup show` shows it.
	Classes *output.Ordered[int] `json:"classes,omitzero"` // How many sandboxes are in each class.
	Settled *int                 `json:"settled,omitzero"` // How many differences settled themselves while they were looked at.
	Plan    *PlanItem            `json:"plan,omitzero"`    // What would be done.
	Counts  *fleet.Counts        `json:"counts,omitzero"`  // What became of all, with --fix.
}

// ReconcileColumns are the columns of a ReconcileItem.
func ReconcileColumns(now time.Time, of func(reconcile.Row) triage.Verdict) []output.Column[reconcile.Row] {
	return output.Columns(func(r reconcile.Row) ReconcileItem {
		item := ReconcileItem{
			Ref: r.Ref.String(), Provider: r.Ref.Provider, Class: string(r.Class), Cause: string(r.Cause), Action: string(r.Action), Verdict: r.Verdict,
			RecordState: recordState(r), State: orNil(string(r.Box.State)), AgeSeconds: ageSeconds(r.Box, now), TaskID: taskOf(r), Observations: r.Observations,
			Reason: r.Reason, RecordEvidence: EvidenceList(r.Record), RealEvidence: EvidenceList(r.Reality),
		}
		if r.Box.ID != "" {
			item.Diagnosis = new(diagnosisOf(of(r)))
		}
		return item
	}, output.Column[reconcile.Row]{Name: "action", Tone: actionTone})
}

func actionTone(r reconcile.Row) output.Tone {
	switch {
	case r.Action.Acts():
		return output.Bad
	case r.Action == reconcile.ActReport:
		return output.Warn
	}
	return output.Muted
}

func recordState(r reconcile.Row) *string {
	var words []string
	for _, record := range r.Records {
		words = append(words, record.RawState)
	}
	return orNil(strings.Join(words, ", "))
}

func taskOf(r reconcile.Row) *string {
	for _, record := range r.Records {
		if record.TaskID != "" {
			return &record.TaskID
		}
	}
	return orNil(r.Box.TaskID)
}

// ageSeconds is the age of a sandbox; nil = unknown.
func ageSeconds(s sandbox.Sandbox, now time.Time) *float64 {
	age, source := s.Age(now)
	return secondsOrNil(age, source != sandbox.AgeUnknown)
}

// ReconcileChecks is a plan as a monitor reads it: what sbx would repair is a problem,
// what people shall look at a warning, and what could not be compared unknown.
func ReconcileChecks(plan reconcile.Plan) []ops.Check {
	var rows []ops.Check
	for _, err := range plan.Errors {
		rows = append(rows, ops.ToolCheck("compared", sandbox.Unknown, err.Error(), fault.HintOf(err)))
	}
	for _, r := range plan.Rows {
		row := ops.ToolCheck(r.Ref.String(), sandbox.VerdictOf(!r.NeedsAction()), string(r.Cause)+": "+r.Reason, "")
		row.Minor = !r.Action.Acts()
		rows = append(rows, row)
	}
	return rows
}

// ReconcileRowErr is what a row counts as in a check.
func ReconcileRowErr(row reconcile.Row) error {
	if !row.NeedsAction() {
		return nil
	}
	return fault.New(fault.KindFound, "%s, %s: %s", row.Class, row.Cause, row.Reason).At(row.Ref.Provider, row.Ref.ID)
}

// ReconcileClasses are the runbook's counts, of both kinds of orphans among them.
func ReconcileClasses(plan reconcile.Plan) output.Ordered[int] {
	counts := plan.Counts()
	var fields output.Ordered[int]
	for _, c := range reconcile.Classes() {
		fields = append(fields, output.Field{Key: string(c), Value: counts[c]})
	}
	return fields
}

// ReconcileSummary is the last line of the procedure, for people.
func ReconcileSummary(plan reconcile.Plan, endings []sandbox.Ending) string {
	n := plan.Counts()
	text := fmt.Sprintf("Reconciliation complete: %d only on record, %d only real, %d differ, %d on both sides",
		n[reconcile.RecordOnly], n[reconcile.RealOnly], n[reconcile.Differs], n[reconcile.Both])
	if len(plan.Errors) > 0 {
		text = strings.Replace(text, "complete", "incomplete", 1) + fmt.Sprintf("; %d errors", len(plan.Errors))
	}
	c := fleet.Count(endings)
	var b strings.Builder
	b.WriteString(text)
	for _, part := range []struct {
		n    int
		word sandbox.Outcome
	}{
		{c.Verified, sandbox.OutcomeVerified},
		{c.AlreadyGone, sandbox.OutcomeAlreadyGone},
		{c.Accepted, sandbox.OutcomeAccepted},
		{c.Stuck, sandbox.OutcomeStuck},
		{c.Failed, sandbox.OutcomeFailed},
		{c.Changed, sandbox.OutcomeChanged},
		{c.Skipped, sandbox.OutcomeSkipped},
		{c.NotAttempted, sandbox.OutcomeNotAttempted},
	} {
		if part.n > 0 {
			fmt.Fprintf(&b, "; %d %s", part.n, part.word)
		}
	}
	return b.String()
}

// ReconcilePage shows people what needs attention, what would be changed last; what agrees is
// a number.
func ReconcilePage(s *output.Sheet, rows []reconcile.Row, guards []safety.Guard) {
	agree := 0
	byClass := make(map[reconcile.Class][]reconcile.Row)
	for _, r := range rows {
		if r.Class == reconcile.Both && !r.NeedsAction() {
			agree++
		} else {
			byClass[r.Class] = append(byClass[r.Class], r)
		}
	}
	s.Section(fmt.Sprintf("In order: %d", agree))
	for _, g := range guards {
		if !g.OK {
			value, limit := g.Figures()
			s.FieldTone(g.Name, fmt.Sprintf("%s; the limit is %s: --fix would refuse", value, limit), output.Bad)
		}
	}
	for _, c := range reconcile.Classes() {
		list := byClass[c]
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b reconcile.Row) int {
			return cmp.Compare(actRank(a), actRank(b))
		})
		table := make([][]any, len(list))
		for i, r := range list {
			table[i] = []any{TaskAndName(r.Box), r.Ref, string(r.Cause), string(r.Action), r.Reason}
		}
		s.Section(fmt.Sprintf("%s: %d", c, len(list)))
		s.Compact([]string{"name", "ref", "cause", "action", "why"}, table)
	}
}

// actRank is 1 for a row that --fix would change.
func actRank(r reconcile.Row) int {
	if r.Action.Acts() {
		return 1
	}
	return 0
}

// ReconcileDoneColumns are the columns of a ReconcileDoneItem.
func ReconcileDoneColumns() []output.Column[reconcile.Done] {
	return output.Columns(func(d reconcile.Done) ReconcileDoneItem {
		return ReconcileDoneItem{
			d.Ref.String(), d.Outcome, string(d.Row.Action), string(d.Row.Class), string(d.Row.Cause), d.Reason, new(output.Seconds(d.Duration)), EvidenceList(d.Evidence),
		}
	})
}

// ReconcileDoneLine is one removed record, ended orphan or reconciled state, for people.
func ReconcileDoneLine(d reconcile.Done) string {
	line := fmt.Sprintf("%s %s: %s, %s", d.Outcome, d.Ref, d.Row.Action, d.Row.Cause)
	if d.Reason != "" && d.Outcome != sandbox.OutcomeVerified {
		return line + ": " + d.Reason
	}
	return line
}

// ReconcilePlan is the plan as every verb that ends sandboxes shows it.
func ReconcilePlan(result *end.ReconcileResult) *PlanItem {
	selected, kept := []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, row := range result.Plan.Rows {
		if row.Action.Acts() {
			selected = append(selected, ops.PlannedEnd{Ref: row.Ref, Reason: string(row.Action) + ": " + row.Reason})
		} else {
			kept = append(kept, ops.PlannedEnd{Ref: row.Ref, Reason: row.Reason})
		}
	}
	return PlanOf(result.RunID, selected, kept, result.Plan.Guards(result.Limits))
}
