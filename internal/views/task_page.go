package views

import (
	"cmp"
	"fmt"
	"slices"
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
		s.Field("kept", r.Kept.Ref.String()+", until it was used or terminated")
	}
	addMoment(s, "created", r.CreatedAt)
	addMoment(s, "deadline", r.DeadlineAt)
	addMoment(s, "ended", r.EndedAt)
	if !r.State.Final() && r.Owner.PID != 0 {
		s.Field("owner", fmt.Sprintf("pid %d on %s, alive: %s", r.Owner.PID, r.Owner.Host, r.Alive))
	}
	r.pageFailure(s)
	r.pageEvidence(s)
	r.pageTail(s)
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
	words += ", " + publishWay(r.Task)
	if p.Fence != "" {
		words += ", claim " + p.Fence
	}
	return words
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

// causeCell is the cause of an attempt's end and how sure it is. Of a cause that is not known nothing is certain.
func causeCell(e task.Exit) string {
	if e.Cause == sandbox.CauseUnknown {
		return string(e.Cause)
	}
	return ops.WithDetail(string(e.Cause), string(e.Confidence))
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
	return []any{a.N, ref, cmp.Or(e.Signal, e.Raw), string(e.Class), causeCell(e), took, messages, gone}
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

// pageTail shows the end of the output of a program that did not end well: it is kept with the task, and its provider may
// have no log of it any more.
func (r TaskRow) pageTail(s *output.Sheet) {
	last := r.Last()
	if last == nil || len(last.Tail) == 0 {
		return
	}
	s.Section("Last output")
	for _, line := range last.Tail {
		s.Text(line)
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

// evidenceLines is how much evidence a person reads at the end of a run.
const evidenceLines = 3

// failureLines is what an operator needs of a task that did not succeed: why, how sure that
// is and by what, what sbx did about it, and what is left. Each is one line.
func (r TaskRow) failureLines() []string {
	a := r.Last()
	if r.State == task.Completed || a == nil {
		return nil
	}
	if a.Exit == nil {
		return r.withLeftover(nil)
	}
	lines := []string{"likely cause: " + r.causeWords()}
	blamed := a.Exit.Cause != sandbox.CauseNone && a.Exit.Cause != sandbox.CauseUnknown
	for i, e := range a.Exit.Evidence {
		if i < evidenceLines && (blamed || e.What == "create") { // without a cause, the counters say only that all is well
			lines = append(lines, "evidence: "+e.What+" = "+ops.WithDetail(e.Value, e.Source))
		}
	}
	if a.Retry != nil && !a.Retry.Again && a.Retry.Why != "" {
		lines = append(lines, "not tried again: "+a.Retry.Why)
	}
	return r.withLeftover(lines)
}

func (r TaskRow) withLeftover(lines []string) []string {
	if r.VerifiedAt.IsZero() {
		return append(lines, "not verified gone yet: the next sbx continues")
	}
	return append(lines, "gone: all its sandboxes are verified gone")
}

// causeWords says why the task did not succeed: a program that did is not to blame.
func (r TaskRow) causeWords() string {
	e := r.lastExit()
	if e.Class != sandbox.ClassOK {
		return CauseWords(e)
	}
	switch r.Publish.State {
	case task.PublishRefused:
		return "the program succeeded, but its work was not published"
	case task.PublishUnknown:
		return "the program succeeded, but it is unknown whether its work was published"
	case task.PublishNone, task.PublishBegun, task.PublishDone, task.PublishNothing:
	}
	if !r.StopAt.IsZero() {
		return "somebody stopped it"
	}
	return cmp.Or(r.Refused, "unknown")
}

// CauseWords says why a program ended and how certain that is. An unknown cause is named as
// unknown, with the possible ones.
func CauseWords(e task.Exit) string {
	words := map[sandbox.Cause]string{
		sandbox.CauseOOM:            "it ran out of memory",
		sandbox.CauseOOMChild:       "a child process ran out of memory",
		sandbox.CauseRuntimeHeap:    "its language runtime ran out of heap; the sandbox had memory left",
		sandbox.CauseMemoryWatchdog: "it exceeded its memory limit, and sbx's watchdog killed it",
		sandbox.CauseProcessLimit:   "it reached its limit of processes and threads",
		sandbox.CauseFileLimit:      "it reached its limit of open files",
		sandbox.CauseDiskFull:       "its disk was full",
		sandbox.CauseTimeout:        "it reached a time limit of sbx",
		sandbox.CauseInactivity:     "it was inactive, and sbx stopped it",
		sandbox.CauseStopped:        "somebody stopped it",
		sandbox.CauseSupervisorLost: "the process that ran it died",
		sandbox.CauseBusyLoop:       "it was in a busy loop",
		sandbox.CauseHungIO:         "it waited for something that never answered",
		sandbox.CauseLeak:           "its memory grew without limit",
		sandbox.CauseSilent:         "it fell silent",
		sandbox.CauseNoAnswer:       "its sandbox stopped answering",
		sandbox.CauseProvisioning:   "its sandbox did not start",
		sandbox.CauseEnding:         "its sandbox did not end",
		sandbox.CauseOrphan:         "it had no owner any more",
		sandbox.CauseGhost:          "it was recorded as running, but did not exist",
		sandbox.CauseRestarts:       "it was started again and again",
		sandbox.CauseUnhealthy:      "its own health check failed",
		sandbox.CauseMainEnded:      "its main program had ended, and something beside it ran on",
		sandbox.CauseNone:           "", // the class says what is known
		sandbox.CauseUnknown:        "",
	}[e.Cause]
	if words != "" {
		return ops.WithDetail(words, string(e.Confidence))
	}
	if e.RefusedCreate() {
		return "the request to create its sandbox was refused"
	}
	return classWords(e.Class)
}

func classWords(c sandbox.Class) string {
	words := map[sandbox.Class]string{
		sandbox.ClassAgentError:    "the program itself failed; its output says why",
		sandbox.ClassUsage:         "the program was called wrongly, or panicked; its output says why",
		sandbox.ClassAuth:          "the provider refused the credentials: `sbx doctor` shows which",
		sandbox.ClassEnvironment:   "the command or its folder was not found, or it is not executable",
		sandbox.ClassLauncher:      "the sandbox failed before the program started",
		sandbox.ClassKilledByUs:    "sbx terminated it on purpose",
		sandbox.ClassKilledUnknown: "unknown: a limit of the provider, the agent's own kill, or an operator",
		sandbox.ClassCrash:         "the program crashed",
		sandbox.ClassTransport:     "the connection to the sandbox was lost; the program may still run",
		sandbox.ClassGone:          "the sandbox vanished while it ran",
		sandbox.ClassInfra:         "the provider failed",
		sandbox.ClassOOM:           "it ran out of memory",
		sandbox.ClassTimeout:       "it reached a time limit of sbx",
		sandbox.ClassStopped:       "somebody stopped it",
		sandbox.ClassOK:            "", sandbox.ClassUnknown: "",
	}[c]
	if words == "" {
		return "unknown"
	}
	return words
}

func (r TaskRow) outOfMemory() bool {
	e := r.lastExit()
	return e.Class == sandbox.ClassOOM || slices.Contains([]sandbox.Cause{sandbox.CauseOOM, sandbox.CauseOOMChild, sandbox.CauseMemoryWatchdog}, e.Cause)
}

// moreProcesses is the launch again with twice its limit of processes.
func (r TaskRow) moreProcesses() string {
	if r.Spec.PIDs > 0 {
		return fmt.Sprintf("sbx run --pids %d ...", 2*r.Spec.PIDs)
	}
	return "sbx run --pids NUMBER ..."
}

// moreMemory is the launch again with twice of what the last attempt had.
func (r TaskRow) moreMemory() string {
	size := "SIZE"
	if a := r.Last(); a != nil && a.MemoryMB > 0 {
		size = fmt.Sprintf("%dM", 2*a.MemoryMB)
	}
	return "sbx run --memory " + size + " ..."
}

// pageFailure is failure on the page, before the attempts that it sums up.
func (r TaskRow) pageFailure(s *output.Sheet) {
	a := r.Last()
	if !r.State.Final() || r.State == task.Completed || a == nil || a.Exit == nil {
		return
	}
	s.Section("Why").Field("likely cause", r.causeWords())
	for _, one := range r.Attempts {
		if one.Retry != nil && one.Retry.Why != "" {
			did := "not tried again"
			if one.Retry.Again {
				did = "tried again"
			}
			s.Field(fmt.Sprintf("after attempt %d", one.N), ops.WithDetail(did, one.Retry.Why))
		}
	}
}
