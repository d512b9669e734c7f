package look

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/snapshot"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// DiagnoseRequest says what is investigated.
type DiagnoseRequest struct {
	Word string // a sandbox or a task; "" = all sandboxes
	// CleanupLog is the log of a cleanup job that sbx does not run, and LogName where it is from;
	// "" = there is none.
	CleanupLog, LogName string
	// Record keeps what is read for DiagnoseResult.Snapshot.
	Record bool
}

// Answer is what a step of the investigation found for one question of the runbook.
type Answer struct {
	ID       string // requirement id
	Question string
	Text     string // where it is not known, why
	Known    bool
}

// DiagnoseStep is one step of the investigation with its answers.
type DiagnoseStep struct {
	triage.InvestigationStep

	Took    time.Duration
	Answers []Answer
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
	Census    Census           // of all sandboxes
	Stuck     []ops.CauseGroup // the most frequent cause first
	Suspected []ops.CauseGroup // not known to be stuck, and with a likely cause of trouble
	Unjudged  []sandbox.Ref
	Subjects  []check.Subject // the figures of each provider that answered, for conditions

	Inspected *InspectResult // of one sandbox; nil = none
	Task      *ops.TaskState // of a task; nil = none

	record func() (*snapshot.Snapshot, error) // nil = it was not of all sandboxes
}

// Snapshot is what was read and concluded of all sandboxes, where it was to be recorded. It is made at
// each call. Where what the runbooks say of it is missing, it is beside the error.
func (r *DiagnoseResult) Snapshot() (*snapshot.Snapshot, error) {
	if r.record == nil {
		return nil, fault.Usage("this diagnosis is not recorded: it is of one sandbox, or nobody asked for a snapshot")
	}
	return r.record()
}

// Verdict is true where nothing is wrong, false where something is, else unknown.
func (r *DiagnoseResult) Verdict() sandbox.Verdict {
	switch {
	case len(r.wrong()) > 0:
		return sandbox.False
	case r.open() != "":
		return sandbox.Unknown
	}
	return sandbox.True
}

// Err decides the exit code: what was found, else a provider that failed, else that the verdict is
// not known.
func (r *DiagnoseResult) Err() error {
	switch wrong := r.wrong(); {
	case len(wrong) > 0:
		return fault.New(fault.KindFound, "%s", strings.Join(wrong, "; "))
	case len(r.Errors) > 0:
		return fault.New(fault.KindPartial, "%w", errors.Join(r.Errors...))
	case r.open() != "":
		return fault.New(fault.KindUnavailable, "%s", r.open())
	}
	return nil
}

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

// Diagnose investigates all sandboxes, one, or the sandbox of a task: five steps at once, each with
// its own limit, then flags and ranked causes. It changes nothing.
func Diagnose(ctx context.Context, env *ops.Env, req DiagnoseRequest, watch ops.Observer) (*DiagnoseResult, error) {
	d := &diagnosis{env: env, req: req, redact: watch.Redact, result: &DiagnoseResult{}}
	if err := d.readCleanupLog(); err != nil {
		return nil, err
	}
	what := req.Word
	if what == "" {
		what = "all sandboxes"
	}
	progress := watch.Progress("diagnosing " + what)
	defer progress.Done()
	d.progress = &ops.JoinedLooks{Progress: progress}
	var err error
	if req.Word == "" {
		err = d.diagnoseFleet(ctx)
	} else {
		err = d.diagnoseWord(ctx)
	}
	if err != nil {
		return nil, err
	}
	d.result.At = cmp.Or(d.result.At, env.Now())
	d.result.Errors = withoutDuplicates(d.result.Errors)
	env.WarnWithoutRecords(ctx, watch)
	keepDiagnosis(env, d.result)
	return d.result, context.Cause(ctx)
}

// readCleanupLog refuses a log in which nothing can be read: without that the answer would be the same
// as without a log.
func (d *diagnosis) readCleanupLog() error {
	if d.req.LogName == "" {
		return nil
	}
	log := triage.ReadCleanupLog(d.req.CleanupLog, d.env.Now())
	d.log = &log
	switch {
	case log.Lines == 0:
		return fault.Usage("--cleanup-log: %s has no lines", d.req.LogName).
			WithHint("give the whole log of the job: its other lines show for how long no cleanup ran")
	case log.Matched == 0 && log.Dated == 0:
		return fault.Usage("--cleanup-log: %s is not a log: of its %d lines none begins with a time, and none is of a cleanup", d.req.LogName, log.Lines).
			WithHint("lines begin with their time (2026-01-02T15:04:05Z ...), or are JSON objects with one")
	}
	return nil
}

// diagnosis is one run of Diagnose.
type diagnosis struct {
	env      *ops.Env
	req      DiagnoseRequest
	progress *ops.JoinedLooks
	result   *DiagnoseResult
	log      *triage.CleanupLog // nil = none was given
	redact   snapshot.Redact
}

// diagnoseWord investigates a task, or a sandbox. A word that may be both is a sandbox, unless it
// has the form of a task's id.
func (d *diagnosis) diagnoseWord(ctx context.Context) error {
	word := d.req.Word
	if !task.IsID(word) {
		err := d.diagnoseSandbox(ctx, word)
		if kind := fault.KindOf(err); kind != fault.KindNotFound && kind != fault.KindUsage {
			return err
		}
		state, taskErr := ops.GetTask(ctx, d.env, word) // by its key
		if taskErr != nil {
			return err
		}
		return d.diagnoseTask(ctx, state)
	}
	state, err := ops.GetTask(ctx, d.env, word)
	if err != nil {
		return err
	}
	return d.diagnoseTask(ctx, state)
}

// diagnoseTask investigates the sandbox of a task's last attempt. How the attempt ended is on
// record, also where the sandbox is gone.
func (d *diagnosis) diagnoseTask(ctx context.Context, state ops.TaskState) error {
	d.result.Task = &state
	last := state.Last()
	if last == nil || last.Sandbox == "" {
		return d.diagnoseNothing(ctx, state)
	}
	return d.diagnoseSandbox(ctx, last.Ref().String())
}

// attemptSandbox is the record of a task's attempt where its provider has none.
func attemptSandbox(t ops.TaskState, a *task.Attempt) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: a.Provider, ID: a.Sandbox, TaskID: t.ID, State: sandbox.StateUnknown,
		CreatedAt: a.IntentAt, StartedAt: a.StartedAt, LastActivityAt: a.OutputAt, EndedAt: a.EndedAt,
	}
	if !a.GoneAt.IsZero() {
		s.State = sandbox.StateTerminated
	}
	return addAttemptExit(s, a)
}

// addAttemptExit adds the recorded exit where the sandbox itself shows none.
func addAttemptExit(s sandbox.Sandbox, a *task.Attempt) sandbox.Sandbox {
	if s.Exit == nil && a.Exit != nil {
		e := a.Exit
		s.Exit = &sandbox.Exit{Code: e.Code, Raw: e.Raw, Signal: e.Signal, Class: e.Class, Cause: e.Cause, Confidence: e.Confidence, Evidence: e.Evidence}
	}
	return s
}

// diagnoseNothing is of a task that has no sandbox: only its record says why.
func (d *diagnosis) diagnoseNothing(ctx context.Context, state ops.TaskState) error {
	none := func(context.Context) ([]reply, error) {
		return nil, fault.New(fault.KindNotFound, "%s has no sandbox: it is %s", state.ID, ops.WithDetail(string(state.State), state.Why()))
	}
	d.runSteps(ctx, map[string]stepWork{
		stepCount: {countQuestions(), none}, stepStuck: {stuckQuestions(), none}, stepLogs: {logQuestions(), none},
		stepResources: {resourceQuestions(), none}, stepCleanup: d.cleanupWork(d.cleanupStatus(ctx), nil),
	})
	return nil
}
