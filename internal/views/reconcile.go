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
	"sbx/internal/output"
	"sbx/internal/reconcile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// ReconcileColumns are one row of a plan.
func ReconcileColumns(now time.Time, of func(reconcile.Row) triage.Verdict) []output.Column[reconcile.Row] {
	type row = reconcile.Row
	diagnosis := func(r row) any {
		if r.Box.ID == "" {
			return nil
		}
		return diagnosisOf(of(r))
	}
	return []output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.Ref.String() }},
		{Name: "provider", Level: output.Extra, Value: func(r row) any { return r.Ref.Provider }},
		{Name: "class", Value: func(r row) any { return string(r.Class) }},
		{Name: "cause", Value: func(r row) any { return string(r.Cause) }},
		{Name: "action", Value: func(r row) any { return string(r.Action) }, Tone: actionTone},
		{Name: "verdict", Level: output.Wide, Value: func(r row) any { return r.Verdict }},
		{Name: "record_state", Head: "RECORD", Level: output.Wide, Value: func(r row) any { return recordState(r) }},
		{Name: "state", Level: output.Wide, Value: func(r row) any { return spokenOrNil(string(r.Box.State)) }},
		{Name: "age_seconds", Head: "AGE", Level: output.Wide, Value: func(r row) any { return ageSeconds(r.Box, now) }},
		{Name: "task_id", Head: "TASK", Level: output.Wide, Value: func(r row) any { return taskOf(r) }},
		{Name: "observations", Head: "SEEN", Level: output.Wide, Value: func(r row) any { return r.Observations }},
		{Name: "reason", Head: "WHY", Value: func(r row) any { return r.Reason }},
		{Name: "diagnosis", Level: output.Extra, Value: diagnosis},
		{Name: "record_evidence", Level: output.Extra, Value: func(r row) any { return EvidenceList(r.Record) }},
		{Name: "real_evidence", Level: output.Extra, Value: func(r row) any { return EvidenceList(r.Reality) }},
	}
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

// spokenOrNil is nil for an empty word.
func spokenOrNil(word string) any {
	if word == "" {
		return nil
	}
	return word
}

func recordState(r reconcile.Row) any {
	var words []string
	for _, record := range r.Records {
		words = append(words, record.RawState)
	}
	return spokenOrNil(strings.Join(words, ", "))
}

func taskOf(r reconcile.Row) any {
	for _, record := range r.Records {
		if record.TaskID != "" {
			return record.TaskID
		}
	}
	return spokenOrNil(r.Box.TaskID)
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
		row := ops.ToolCheck(r.Ref.String(), sandbox.VerdictOf(!r.Found()), string(r.Cause)+": "+r.Reason, "")
		row.Minor = !r.Action.Acts()
		rows = append(rows, row)
	}
	return rows
}

// ReconcileRowErr is what a row counts as in a check.
func ReconcileRowErr(row reconcile.Row) error {
	if !row.Found() {
		return nil
	}
	return fault.New(fault.KindFound, "%s, %s: %s", row.Class, row.Cause, row.Reason).At(row.Ref.Provider, row.Ref.ID)
}

// ReconcileClasses are the runbook's counts, of both kinds of orphans among them.
func ReconcileClasses(plan reconcile.Plan) output.Fields {
	counts := plan.Counts()
	var fields output.Fields
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
		if r.Class == reconcile.Both && !r.Found() {
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

// ReconcileDoneColumns are what became of one row.
func ReconcileDoneColumns() []output.Column[reconcile.Done] {
	type row = reconcile.Done
	return []output.Column[row]{
		{Name: "ref", Value: func(d row) any { return d.Ref.String() }},
		{Name: "outcome", Value: func(d row) any { return d.Outcome }},
		{Name: "action", Value: func(d row) any { return string(d.Row.Action) }},
		{Name: "class", Level: output.Wide, Value: func(d row) any { return string(d.Row.Class) }},
		{Name: "cause", Value: func(d row) any { return string(d.Row.Cause) }},
		{Name: "reason", Value: func(d row) any { return d.Reason }},
		{Name: "duration_seconds", Head: "TOOK", Value: func(d row) any { return output.Seconds(d.Duration) }},
		{Name: "evidence", Level: output.Extra, Value: func(d row) any { return EvidenceList(d.Evidence) }},
	}
}

// ReconcileDoneLine is one removed record, ended orphan or reconciled state, for people.
func ReconcileDoneLine(d reconcile.Done) string {
	line := fmt.Sprintf("%s %s: %s, %s", d.Outcome, d.Ref, d.Row.Action, d.Row.Cause)
	if d.Reason != "" && d.Outcome != sandbox.OutcomeVerified {
		return line + ": " + d.Reason
	}
	return line
}

// ReconcilePlanFields are the plan as every verb that ends sandboxes shows it. Nothing was
// chosen by age alone, so there is no cutoff.
func ReconcilePlanFields(result *ops.ReconcileResult) output.Fields {
	selected, kept := []ops.PlannedEnd{}, []ops.PlannedEnd{}
	for _, row := range result.Plan.Rows {
		if row.Action.Acts() {
			selected = append(selected, ops.PlannedEnd{Ref: row.Ref, Reason: string(row.Action) + ": " + row.Reason})
		} else {
			kept = append(kept, ops.PlannedEnd{Ref: row.Ref, Reason: row.Reason})
		}
	}
	return output.Fields{
		{Key: "run_id", Value: result.RunID},
		{Key: "cutoff", Value: nil},
		{Key: "selected", Value: selected},
		{Key: "kept", Value: kept},
		{Key: "guards", Value: result.Plan.Guards(result.Limits)},
	}
}
