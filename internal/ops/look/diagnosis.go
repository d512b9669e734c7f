package look

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// DiagnoseRequest says what is investigated.
type DiagnoseRequest struct {
	Word    string // a sandbox or a task; "" = all sandboxes
	Sandbox bool   // Word is a sandbox, whatever its form
	// CleanupLog is the log of a cleanup job that sbx does not run, and LogName where it is from;
	// "" = there is none.
	CleanupLog, LogName string
}

// DiagnoseResult is an investigation of one sandbox, of a task, or of all sandboxes.
type DiagnoseResult struct {
	Steps  []DiagnoseStep
	Flags  []triage.Flag
	Causes []triage.Finding
	At     time.Time
	Errors []error // of providers and parts that could not be asked

	Providers []string         // that were asked
	Listed    int              // sandboxes
	Lost      []string         // profiles whose list could not be read
	Census    Census           // of all sandboxes
	Stuck     []ops.CauseGroup // the most frequent cause first
	Suspected []ops.CauseGroup // not known to be stuck, and with a likely cause of trouble
	Unjudged  []sandbox.Ref
	Unowned   map[string]int  // stuck ones that a cleanup keeps, since nobody owns them, by profile
	MaxDelete int             // more than these a cleanup refuses without a flag
	Subjects  []check.Subject // the figures of each provider that answered, for conditions

	Inspected *InspectResult // of one sandbox; nil = none
	Task      *ops.TaskState // of a task; nil = none
}

// Verdict is true where nothing is wrong, false where something is, else unknown.
func (r *DiagnoseResult) Verdict() sandbox.Verdict {
	switch {
	case r.unlisted():
		return sandbox.Unknown
	case len(r.wrong()) > 0:
		return sandbox.False
	case r.open() != "":
		return sandbox.Unknown
	}
	return sandbox.True
}

// Err decides the exit code: that no list could be read, as `ls` has it, what was found, else a provider that
// failed, else that the verdict is not known.
func (r *DiagnoseResult) Err() error {
	switch wrong := r.wrong(); {
	case r.unlisted() && len(r.Errors) > 0:
		kind := fault.KindOf(r.Errors[0])
		if slices.ContainsFunc(r.Errors, func(err error) bool { return fault.KindOf(err) != kind }) {
			kind = fault.KindPartial
		}
		return fault.New(kind, "%w", errors.Join(r.Errors...))
	case len(wrong) > 0:
		return fault.New(fault.KindFound, "%s", strings.Join(wrong, "; "))
	case len(r.Errors) > 0:
		return fault.New(fault.KindPartial, "%w", errors.Join(r.Errors...))
	case r.open() != "":
		return fault.New(fault.KindUnavailable, "%s", r.open())
	}
	return nil
}

// unlisted reports whether no list could be read, so that nothing is known of any sandbox.
func (r *DiagnoseResult) unlisted() bool { return len(r.Lost) > 0 && len(r.Lost) == len(r.Providers) }

// wrong says what was found: stuck sandboxes, likely causes, and flags that are problems.
func (r *DiagnoseResult) wrong() []string {
	var all []string
	switch s := r.Inspected; {
	case s != nil && s.Verdict.Stuck == sandbox.True:
		all = append(all, s.Seen.Sandbox.Ref().String()+" is stuck")
	case r.Census.Stuck > 0:
		all = append(all, countedSandboxes(r.Census.Stuck)+" stuck")
	}
	likely := slices.IndexFunc(r.Causes, isLikely)
	switch {
	case likely < 0:
	case len(all) == 0:
		all = append(all, r.Causes[likely].Title)
	case r.Inspected != nil:
		all[0] += ": " + r.Causes[likely].Title
	}
	for _, f := range r.Flags {
		if f.IsProblem() {
			all = append(all, f.Say)
		}
	}
	return all
}

// isLikely says that a cause is more than a hint. A stop that somebody asked for is no fault.
func isLikely(f triage.Finding) bool {
	return (f.Confidence == sandbox.Certain || f.Confidence == sandbox.Probable) && f.Cause != sandbox.CauseStopped
}

// open says why there is no verdict where nothing was found; "" = there is one.
func (r *DiagnoseResult) open() string {
	switch s := r.Inspected; {
	case s != nil && s.Missing == nil && s.Verdict.Unjudged():
		reason, _, _ := strings.Cut(s.Verdict.Reason, ";")
		reason, _, _ = strings.Cut(reason, " (")
		return s.Seen.Sandbox.Ref().String() + " is " + reason
	case r.Census.Unjudged > 0:
		return countedSandboxes(r.Census.Unjudged) + " not judged"
	}
	for _, step := range r.Steps {
		if step.ID == stepStuck && !slices.ContainsFunc(step.Answers, func(a Answer) bool { return a.Known }) {
			return "the step stuck has no answer: " + step.Answers[0].Text
		}
	}
	return ""
}

// countedSandboxes is "1 sandbox is" or "3 sandboxes are".
func countedSandboxes(n int64) string {
	if n == 1 {
		return "1 sandbox is"
	}
	return strconv.FormatInt(n, 10) + " sandboxes are"
}

// diagnosis is one run of Diagnose.
type diagnosis struct {
	env      *ops.Env
	req      DiagnoseRequest
	progress *ops.JoinedLooks
	result   *DiagnoseResult
	log      *triage.CleanupLog // nil = none was given

	// The figures of the profile of one sandbox; nil = not asked.
	stats  *future[[]fleet.ProviderStats]
	quotas *future[[]fleet.ProviderQuota]
}
