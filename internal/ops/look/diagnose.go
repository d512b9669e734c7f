package look

import (
	"cmp"
	"context"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// Diagnose investigates all sandboxes, one, or the sandbox of a task: five steps at once, each with
// its own limit, then flags and ranked causes. It changes nothing. Where ctx has ended, what was seen
// until then is beside its cause.
func Diagnose(ctx context.Context, env *ops.Env, req DiagnoseRequest, watch ops.Observer) (*DiagnoseResult, error) {
	d := &diagnosis{env: env, req: req, result: &DiagnoseResult{}}
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
	if err := d.diagnoseWord(ctx); err != nil {
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

// diagnoseWord investigates all sandboxes, one, or a task. A word that may be both is a sandbox, unless
// it has the form of a task's id.
func (d *diagnosis) diagnoseWord(ctx context.Context) error {
	word := d.req.Word
	var err error
	switch {
	case word == "":
		return d.diagnoseFleet(ctx)
	case d.req.Sandbox || !task.IsID(word):
		err = d.diagnoseSandbox(ctx, word)
		if kind := fault.KindOf(err); d.req.Sandbox || kind != fault.KindNotFound && kind != fault.KindUsage {
			return err
		}
	}
	state, taskErr := ops.GetTask(ctx, d.env, word) // by its id, or its key
	if taskErr != nil {
		return cmp.Or(err, taskErr)
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

// diagnoseNothing is of a task that has no sandbox: only its record says why.
func (d *diagnosis) diagnoseNothing(ctx context.Context, state ops.TaskState) error {
	none := func(context.Context) ([]reply, error) {
		return nil, fault.New(fault.KindNotFound, "%s has no sandbox: it is %s", state.ID, ops.WithDetail(string(state.State), state.Why()))
	}
	d.result.Steps = runSteps(ctx, d.progress.Say, stepQuestions(d.cleanupEvery()), stepWork{
		stepCount: none, stepStuck: none, stepLogs: none, stepResources: none, stepCleanup: d.cleanupWork(d.cleanupStatus(ctx), nil),
	})
	return nil
}

// keepDiagnosis keeps what was concluded of all sandboxes. What is wrong with one alone is kept as evidence
// of it by every look.
func keepDiagnosis(e *ops.Env, r *DiagnoseResult) {
	if r.Inspected != nil || r.Task != nil {
		return
	}
	e.KeepConclusion(history.Event{
		At: r.At, Verb: "diagnose", Providers: r.Providers, Text: ops.GroupsText(r.Stuck), Flags: ops.KeptFlags(r.Flags, ""), Causes: ops.KeptCauses(r.Causes),
		Figures: []history.Figure{
			{Name: ops.FigureListed, Value: new(int64(r.Listed))},
			{Name: ops.FigureStuck, Value: new(r.Census.Stuck)},
			{Name: ops.FigureUnjudged, Value: new(r.Census.Unjudged)},
		},
	}, r.Errors...)
}
