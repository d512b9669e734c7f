package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// Page is a task for people: its state, what was tried, and what to type.
func (r TaskRow) Page(s *output.Sheet) {
	s.Section(r.ID).FieldTone("state", ops.WithDetail(string(r.State), r.Detail()), r.Tone())
	addKnown(s, "why", r.Refused)
	addKnown(s, "waits for", r.Waits)
	addKnown(s, "key", r.Key)
	addKnown(s, "description", r.Spec.Description)
	addKnown(s, "command", strings.Join(r.Spec.Command, " "))
	addKnown(s, "resumed from", r.ResumedFrom)
	if r.Spec.Publishes() {
		s.Field("publish", r.publishWords())
	}
	s.Field("verified gone", r.goneWords())
	switch {
	case r.canGoOn():
		s.Field("kept", r.Kept.Ref.String()+" until "+r.Kept.ExpiresAt.Format(time.RFC3339))
	case r.Kept != nil:
		s.Field("kept", r.Kept.Ref.String()+", until it was used or ended")
	}
	addMoment(s, "created", r.CreatedAt)
	addMoment(s, "deadline", r.DeadlineAt)
	addMoment(s, "ended", r.EndedAt)
	if !r.State.Final() && r.Owner.PID != 0 {
		s.Field("owner", fmt.Sprintf("pid %d on %s, alive: %s", r.Owner.PID, r.Owner.Host, r.Alive))
	}
	r.pageFailure(s)
	r.pageEvidence(s)
	r.pageAttempts(s)
	r.pageNotes(s)
	for _, line := range r.nextCommands() {
		s.Text("next: " + line)
	}
}

// Detail is what there is to say beside the state.
func (r TaskRow) Detail() string {
	return strings.Trim(strings.Join([]string{string(r.Phase), string(r.Reason)}, " "), " ")
}

func (r TaskRow) publishWords() string {
	p := r.Publish
	none := "not yet"
	if r.State.Final() {
		none = "not published"
	}
	words := ops.WithDetail(cmp.Or(string(p.State), none), p.Message)
	if p.Commit != "" {
		words += ", commit " + p.Commit
	}
	return words + ", " + publishWay(r.Task) + ", fence " + cmp.Or(p.Fence, "not reached")
}

// publishWay is where a task's work goes, or what makes it public.
func publishWay(t task.Task) string {
	if t.Spec.Push == "" {
		return "by `" + t.Spec.Publish + "`"
	}
	return "to " + cmp.Or(t.Publish.Target, t.Spec.Push)
}

func (r TaskRow) goneWords() string {
	switch {
	case !r.VerifiedAt.IsZero() && r.canGoOn():
		return "no: it has kept one"
	case !r.VerifiedAt.IsZero():
		return "yes"
	case len(r.Attempts) == 0:
		return "nothing was made"
	}
	return "no"
}

func (r TaskRow) pageAttempts(s *output.Sheet) {
	if len(r.Attempts) == 0 {
		return
	}
	s.Section("Attempts")
	rows := make([][]any, len(r.Attempts))
	for i, a := range r.Attempts {
		rows[i] = attemptCells(a)
	}
	s.Table([]string{"n", "sandbox", "exit", "class", "cause", "took", "messages", "gone"}, rows)
}

func attemptCells(a task.Attempt) []any {
	e, took, messages, gone := task.Exit{}, "", "", "no"
	if a.Exit != nil {
		e = *a.Exit
	}
	if d, known := AttemptLength(a); known {
		took = sandbox.FormatElapsed(d)
	}
	if a.Messages != nil {
		messages = strconv.Itoa(*a.Messages)
	}
	if !a.GoneAt.IsZero() {
		gone = "yes"
	}
	ref := a.Provider
	if a.Sandbox != "" {
		ref = a.Ref().String()
	}
	return []any{a.N, ref, cmp.Or(e.Signal, e.Raw), string(e.Class), ops.WithDetail(string(e.Cause), string(e.Confidence)), took, messages, gone}
}

func (r TaskRow) pageEvidence(s *output.Sheet) {
	e := r.lastExit()
	if len(e.Evidence) == 0 {
		return
	}
	s.Section("Evidence")
	for _, item := range e.Evidence {
		s.Field(item.What, ops.WithDetail(item.Value, item.Source))
	}
}

func (r TaskRow) pageNotes(s *output.Sheet) {
	s.Section("Timeline")
	rows := make([][]any, len(r.Notes))
	for i, n := range r.Notes {
		rows[i] = []any{n.At, n.Event, n.Detail}
	}
	s.Table([]string{"at", "event", "detail"}, rows)
}

// AttemptLine is one attempt in one line, for the operator who watches.
func AttemptLine(a task.Attempt) string {
	e := task.Exit{}
	if a.Exit != nil {
		e = *a.Exit
	}
	text := fmt.Sprintf("attempt %d: %s", a.N, ops.WithDetail(cmp.Or(string(e.Class), "no exit"), cmp.Or(e.Signal, e.Raw)))
	if e.Cause != sandbox.CauseNone && e.Cause != sandbox.CauseUnknown {
		text += fmt.Sprintf(", cause %s (%s)", e.Cause, e.Confidence)
	}
	if d, known := AttemptLength(a); known {
		text += " after " + sandbox.FormatElapsed(d)
	}
	if a.Messages != nil {
		text += fmt.Sprintf(", %d messages", *a.Messages)
	}
	return text
}
