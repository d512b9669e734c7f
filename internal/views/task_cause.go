package views

import (
	"cmp"
	"fmt"
	"slices"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

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
		return append(lines, "not seen to be gone yet: the next sbx goes on with it")
	}
	return append(lines, "gone: everything made for it was seen to be gone")
}

// causeWords says why the task did not succeed: a program that did is not to blame.
func (r TaskRow) causeWords() string {
	e := r.lastExit()
	if e.Class != sandbox.ClassOK {
		return CauseWords(e)
	}
	switch r.Publish.State {
	case task.PublishRefused:
		return "the program succeeded, and its work was not published"
	case task.PublishUnknown:
		return "the program succeeded, and nobody knows whether its work was published"
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
		sandbox.CauseOOMChild:       "a process that it had started ran out of memory",
		sandbox.CauseRuntimeHeap:    "its runtime ran out of heap; the sandbox had memory left",
		sandbox.CauseMemoryWatchdog: "it took more memory than it may, and the watchdog of sbx ended it",
		sandbox.CauseTimeout:        "a time limit of sbx ended it",
		sandbox.CauseInactivity:     "it showed no sign of life, and sbx ended it",
		sandbox.CauseStopped:        "somebody stopped it",
		sandbox.CauseSupervisorLost: "the process that ran it died",
		sandbox.CauseBusyLoop:       "it was busy without an end",
		sandbox.CauseHungIO:         "it waited for something that did not come",
		sandbox.CauseLeak:           "its memory grew without an end",
		sandbox.CauseSilent:         "it fell silent",
		sandbox.CauseNoAnswer:       "nothing in its sandbox answered any more",
		sandbox.CauseProvisioning:   "its sandbox did not start",
		sandbox.CauseOrphan:         "nobody was left to run it",
		sandbox.CauseNone:           "", // the class says what is known
		sandbox.CauseUnknown:        "",
	}[e.Cause]
	if words != "" {
		return ops.WithDetail(words, string(e.Confidence))
	}
	return classWords(e.Class)
}

func classWords(c sandbox.Class) string {
	words := map[sandbox.Class]string{
		sandbox.ClassAgentError:    "the program itself failed; its output says why",
		sandbox.ClassUsage:         "the program was called wrongly, or panicked; its output says why",
		sandbox.ClassAuth:          "the provider refused the credentials: `sbx doctor` says which",
		sandbox.ClassEnvironment:   "the command is not there, or cannot be run",
		sandbox.ClassLauncher:      "the sandbox failed before the program began",
		sandbox.ClassKilledByUs:    "sbx ended it on purpose",
		sandbox.ClassKilledUnknown: "unknown: a limit of the provider, the agent's own kill, or an operator",
		sandbox.ClassCrash:         "the program crashed",
		sandbox.ClassTransport:     "the connection to the sandbox broke; the program may have gone on",
		sandbox.ClassGone:          "the sandbox was gone under it",
		sandbox.ClassInfra:         "the provider failed",
		sandbox.ClassOOM:           "it ran out of memory",
		sandbox.ClassTimeout:       "a time limit of sbx ended it",
		sandbox.ClassStopped:       "somebody stopped it",
		sandbox.ClassOK:            "", sandbox.ClassUnknown: "",
	}[c]
	if words == "" {
		return "unknown"
	}
	return words
}

// outOfMemory says that more memory would have helped.
func (r TaskRow) outOfMemory() bool {
	e := r.lastExit()
	return e.Class == sandbox.ClassOOM || slices.Contains([]sandbox.Cause{sandbox.CauseOOM, sandbox.CauseOOMChild, sandbox.CauseMemoryWatchdog}, e.Cause)
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
