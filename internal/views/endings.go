package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// BulkEndingLine is one ending of a bulk run for people; a sandbox that stays has its reason.
func BulkEndingLine(e sandbox.Ending) string {
	if e.Outcome == sandbox.OutcomeChanged || e.Outcome == sandbox.OutcomeSkipped {
		return string(e.Outcome) + " " + e.Ref.String() + ": " + e.Reason
	}
	return EndingLine(e)
}

// AddEnding prints one ending, with its trouble beside it.
func AddEnding(list *output.List[sandbox.Ending], e sandbox.Ending, named bool) {
	list.AddResult(e, fleet.Verdict([]sandbox.Ending{e}, named))
}

// RunSummary is the closing line of a run that terminated several sandboxes: what became of
// them, how long it took, where the record is, and what to type for those that are left.
// Retry is that command line.
func RunSummary(endings []sandbox.Ending, took time.Duration, runID, program, retry string) string {
	counts := fleet.Count(endings)
	var parts []string
	open := 0
	for _, o := range sandbox.Outcomes() {
		n := counts.Of(o)
		if n == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, outcomeWords(o)))
		if isUnfinished(o) {
			open += n
		}
	}
	text := fmt.Sprintf("%s in %s; record: %s cleanup show %s", strings.Join(parts, ", "), sandbox.FormatElapsed(took), program, runID)
	if open > 0 && retry != "" {
		text += "; retry: " + retry
	}
	return text
}

// outcomeWords is an outcome for people.
func outcomeWords(o sandbox.Outcome) string {
	if o == sandbox.OutcomeVerified {
		return "terminated"
	}
	return strings.ReplaceAll(string(o), "_", " ")
}

// isUnfinished says that a further run may finish what this one did not.
func isUnfinished(o sandbox.Outcome) bool {
	switch o {
	case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeNotAttempted:
		return true
	case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone, sandbox.OutcomeChanged, sandbox.OutcomeSkipped:
	}
	return false
}

// maxRetryRefs is how many references a command line to retry names.
const maxRetryRefs = 5

// RetryTerminate is the command line that asks again for what a run has left; "" = too many to
// name. Flags are those of the run.
func RetryTerminate(endings []sandbox.Ending, program string, flags []string) string {
	words := append([]string{"terminate"}, flags...)
	n := 0
	for _, e := range endings {
		if isUnfinished(e.Outcome) {
			words = append(words, e.Ref.String())
			n++
		}
	}
	if n == 0 || n > maxRetryRefs {
		return ""
	}
	return program + " " + ShellLine(words)
}

// EndingItem is what became of one sandbox.
type EndingItem struct {
	Ref             string          `json:"ref" table:""`                  // PROFILE/ID.
	Outcome         sandbox.Outcome `json:"outcome" table:""`              // What became of it.
	Reason          string          `json:"reason" table:""`               // Why; empty where the outcome says everything.
	DurationSeconds float64         `json:"duration_seconds" table:"TOOK"` // How long it took.
	Evidence        []EvidenceItem  `json:"evidence"`                      // What the outcome was seen by.
}

// EndingColumns are the columns of an EndingItem.
func EndingColumns() []output.Column[sandbox.Ending] { return output.Columns(endingItem) }

func endingItem(e sandbox.Ending) EndingItem {
	return EndingItem{e.Ref.String(), e.Outcome, e.Reason, output.Seconds(e.Duration), EvidenceList(e.Evidence)}
}

// TerminateKeys are the keys of terminate beside its items.
type TerminateKeys struct {
	RunID  string        `json:"run_id,omitzero"` // The run; `sbx cleanup show` shows it.
	Counts *fleet.Counts `json:"counts,omitzero"` // What became of all.
	Plan   *PlanItem     `json:"plan,omitzero"`   // What would be done, with --dry-run.
}

// PlanItem is what a run would do.
type PlanItem struct {
	RunID    string           `json:"run_id"`   // The run that it would be.
	Cutoff   *time.Time       `json:"cutoff"`   // Sandboxes created before this are selected; null where age does not choose.
	Selected []ops.PlannedEnd `json:"selected"` // What would be ended.
	Kept     []ops.PlannedEnd `json:"kept"`     // What would be left alone.
	Guards   []GuardItem      `json:"guards"`   // The limits of the run.
}

// GuardItem is one limit and how near a run is to it.
type GuardItem struct {
	Name  string   `json:"name"`  // The limit, with the profile where each has its own.
	Limit *float64 `json:"limit"` // What is allowed.
	Value *float64 `json:"value"` // What the run comes to.
	OK    bool     `json:"ok"`    // False: the run is refused.
}

// PlanOf is a plan as documents have it. Nothing was chosen by age, so there is no cutoff.
func PlanOf(run string, selected, kept []ops.PlannedEnd, guards []safety.Guard) *PlanItem {
	return &PlanItem{RunID: run, Selected: selected, Kept: kept, Guards: guardItems(guards)}
}

func guardItems(guards []safety.Guard) []GuardItem {
	items := make([]GuardItem, len(guards))
	for i, g := range guards {
		items[i] = GuardItem{g.Name, &g.Limit, &g.Value, g.OK}
	}
	return items
}

// EndingLine is one ending for people. The reason of a failed ending is in the error beside it.
func EndingLine(e sandbox.Ending) string {
	line := string(e.Outcome) + " " + e.Ref.String()
	if e.Outcome == sandbox.OutcomeVerified {
		line += " in " + sandbox.FormatElapsed(e.Duration)
	}
	if e.Reason != "" && (e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone) {
		line += ": " + e.Reason
	}
	return line
}

// StopItem is what a stop has reached for one task.
type StopItem struct {
	Task             string      `json:"task" table:""`              // The task, or the word that names none.
	WillNotPublish   bool        `json:"will_not_publish" table:""`  // True: nothing more is published.
	Gone             bool        `json:"gone" table:""`              // True: every sandbox made for it was seen to be gone.
	State            *task.State `json:"state" table:""`             // Its state.
	ForbiddenSeconds float64     `json:"forbidden_seconds" table:""` // After how long it could not publish any more.
	GoneSeconds      float64     `json:"gone_seconds" table:""`      // After how long its sandboxes were seen to be gone.
	Reason           *string     `json:"reason" table:""`            // Why it was not stopped.
}

// StopColumns are the columns of a StopItem.
func StopColumns() []output.Column[launch.Stopped] { return output.Columns(stopItem) }

func stopItem(s launch.Stopped) StopItem {
	item := StopItem{s.Word, s.Forbidden, s.Gone, orNil(s.Task.State), output.Seconds(s.ForbiddenAfter), output.Seconds(s.GoneAfter), nil}
	if s.Err != nil {
		item.Reason = new(s.Err.Error())
	}
	return item
}

// StopLine is the second line of a stop; the first was said when it was true.
func StopLine(s launch.Stopped) string {
	switch {
	case s.Gone && s.WasOver:
		return s.Word + ": had ended before (" + string(s.Task.State) + "), nothing of it is left"
	case s.Gone:
		return fmt.Sprintf("%s: gone (%.1fs)", s.Word, s.GoneAfter.Seconds())
	case s.Forbidden:
		return s.Word + ": not seen to be gone"
	}
	return s.Word + ": not stopped"
}

// confidenceOf is the confidence of the cause; nil where nothing is wrong.
func confidenceOf(v triage.Verdict) *sandbox.Confidence {
	if v.Cause == sandbox.CauseNone {
		return nil
	}
	return &v.Confidence
}

// DiagnosisItem is the judgement of one sandbox, for documents in which its words have another
// meaning already.
type DiagnosisItem struct {
	Stuck    sandbox.Verdict `json:"stuck"`    // Whether it is stuck.
	Activity sandbox.Verdict `json:"activity"` // Whether it works.
	Cause    *sandbox.Cause  `json:"cause"`    // Why it is stuck, or what ended it.

	Basis
}

func diagnosisOf(v triage.Verdict) DiagnosisItem {
	return DiagnosisItem{Stuck: v.Stuck, Activity: v.Activity, Cause: orNil(v.Cause), Basis: basisOf(v)}
}

func outcomeRow(o launch.BatchOutcome, now time.Time) TaskRow {
	return TaskRow{Task: o.Task, Now: now, Alive: sandbox.Unknown}
}

// OutcomeColumns are the columns of a task.
func OutcomeColumns(now time.Time) []output.Column[launch.BatchOutcome] {
	return output.Of(TaskItemColumns(), func(o launch.BatchOutcome) TaskRow { return outcomeRow(o, now) })
}

// BatchSummary is the last line of a batch for people.
func BatchSummary(t launch.BatchTally) string {
	text := fmt.Sprintf("%d tasks: %d completed", t.Jobs, t.Completed)
	if t.Before > 0 {
		text += fmt.Sprintf(" (%d of them earlier; --again launches them again)", t.Before)
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d did not", t.Failed)
	}
	if t.Blocked > 0 {
		text += fmt.Sprintf(", %d not started, since a task that they need did not complete", t.Blocked)
	}
	if n := t.Jobs - t.Ended; n > 0 {
		text += fmt.Sprintf(", %d not launched", n)
	}
	return text
}

// OutcomeAside is what people read of an outcome, if anything is new to them.
func OutcomeAside(o launch.BatchOutcome, now time.Time) string {
	if o.Before && o.Verdict == nil {
		return ""
	}
	return outcomeLine(o, now)
}

func outcomeLine(o launch.BatchOutcome, now time.Time) string {
	r := outcomeRow(o, now)
	text := o.Label + " (" + o.Task.ID + "): " + ops.WithDetail(string(o.Task.State), r.Detail())
	if o.Before {
		text += " before"
	}
	if a := o.Task.Last(); a != nil && o.Task.State != task.Completed {
		text += ", " + AttemptLine(*a)
	}
	if len(o.Task.Attempts) > 1 {
		text += fmt.Sprintf(", %d attempts", len(o.Task.Attempts))
	}
	if o.Verdict != nil && !o.Task.State.Final() {
		text += ": " + o.Verdict.Error()
	}
	return text
}
