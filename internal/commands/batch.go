package commands

import (
	"context"
	"errors"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// launchBatch launches the tasks of --file, and shows the outcomes as they come: on stderr
// for people, whose stdout has the programs' output, else as a document.
func launchBatch(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, log *joblog) error {
	req := ops.BatchRequest{Parallel: o.parallel, Warm: o.warm, Again: o.again, RetryFailed: o.retryFailed, BudgetMB: o.budgetMB}
	if err := newBatchReader(d, p, o).readFile(ctx, &req); err != nil {
		return failedAsList(p, err)
	}
	req.Show = taskReporters(p, req.Jobs, false, o.parallel > 1)
	list, err := output.NewList(p, output.ListSpec[ops.BatchOutcome]{
		Schema: runSchema, Columns: views.OutcomeColumns(d.Now()), Aside: func(b ops.BatchOutcome) string { return views.OutcomeAside(b, d.Now()) },
	})
	if err != nil {
		return err
	}
	result, err := ops.Batch(ctx, d.Env, req, d.newObserver(p, func(item any) {
		if b, ok := item.(ops.BatchOutcome); ok {
			logOutcome(log, b)
			addOutcome(list, b)
		}
	}))
	if err != nil {
		return failedAsList(p, err)
	}
	list.Set("tasks", result.Tally.Jobs)
	list.Set("completed", result.Tally.Completed)
	list.Set("not_launched", result.Tally.Jobs-result.Tally.Ended)
	list.Remark(views.BatchSummary(result.Tally))
	list.Fail(result.Left)
	if ctx.Err() != nil || result.Tally.Ended < result.Tally.Jobs {
		list.Fail(result.Verdict)
	}
	return list.CloseAs(result.Verdict)
}

// compareProviders runs the same task at several providers at once, and shows what
// differs. Nothing is tried again unless --attempts asks for it: a difference is what is
// looked for.
func compareProviders(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, req ops.LaunchRequest, log *joblog) error {
	if !o.flags.Changed("attempts") {
		if err := o.flags.Set("attempts", "1"); err != nil {
			return err
		}
	}
	batch := ops.BatchRequest{Parallel: len(o.compare), Fresh: true, BudgetMB: o.budgetMB}
	reader := newBatchReader(d, p, o)
	for _, name := range o.compare {
		job, err := reader.comparedJob(ctx, req, name)
		if err != nil {
			return failedAsList(p, err)
		}
		batch.Jobs = append(batch.Jobs, job)
		batch.Jobs[len(batch.Jobs)-1].Seq = len(batch.Jobs)
	}
	batch.Show = taskReporters(p, batch.Jobs, true, true)
	list, err := output.NewList(p, output.ListSpec[ops.BatchOutcome]{Schema: runSchema, Columns: views.CompareColumns(d.Now())})
	if err != nil {
		return err
	}
	var all []ops.BatchOutcome
	result, err := ops.Batch(ctx, d.Env, batch, d.newObserver(p, func(item any) {
		if b, ok := item.(ops.BatchOutcome); ok {
			logOutcome(log, b)
			all = append(all, b)
		}
	}))
	if err != nil {
		return failedAsList(p, err)
	}
	for _, b := range views.InOrder(all) { // each provider has a row, and all rows make the table
		if _, own := errors.AsType[ops.ProgramExit](b.Verdict); b.Verdict == nil || own {
			_ = list.Add(b) // Close gives the error of stdout
			continue
		}
		_ = list.AddFailed(b, b.Verdict) // Close gives the error of stdout
	}
	difference := views.CompareDifference(all, len(batch.Jobs))
	list.Set("difference", views.TextOrNil(difference))
	list.Remark(difference)
	return list.CloseAs(result.Verdict)
}

func (b *batchReader) comparedJob(ctx context.Context, req ops.LaunchRequest, provider string) (ops.BatchJob, error) {
	var err error
	if req.Config, err = b.configOf(ctx, provider, b.typed); err != nil {
		return ops.BatchJob{}, err
	}
	prepared, err := req.Prepare(ctx, b.d.Env, b.watch)
	return ops.BatchJob{PreparedTask: prepared, Label: provider}, err
}

// failedAsList shows an error that came before any item as a list without items.
func failedAsList(p *output.Printer, err error) error {
	if alreadyShown(err) {
		return err
	}
	return p.Failed(runSchema, output.ShapeList, err)
}

// logOutcome writes what this run did of a job to the joblog.
func logOutcome(log *joblog, o ops.BatchOutcome) {
	if !o.Before && o.Task.ID != "" {
		log.addTask(o.Task, o.Seq)
	}
}

// addOutcome adds an outcome to the document. A program's own exit is no error of sbx.
func addOutcome(list *output.List[ops.BatchOutcome], o ops.BatchOutcome) {
	var err error
	switch _, own := errors.AsType[ops.ProgramExit](o.Verdict); {
	case o.Verdict == nil, own:
		err = list.Add(o)
	case o.Task.ID == "":
		list.Fail(fault.Placed(o.Verdict, "", o.Label))
		return
	default:
		err = list.AddFailed(o, o.Verdict)
	}
	if err == nil {
		_ = list.Flush() // a closed stdout is reported at the end
	}
}

// taskReporters makes the reporter of each task of a batch: where several run at once each line
// names its task. With tabled, stdout is for a table, and the programs' output goes to stderr.
func taskReporters(p *output.Printer, jobs []ops.BatchJob, tabled, several bool) func(ops.BatchJob) ops.TaskObserver {
	width := 0
	for _, j := range jobs {
		width = max(width, len(output.EscapeLine(j.Label)))
	}
	return func(j ops.BatchJob) ops.TaskObserver {
		prefix := ""
		if width > 0 && several {
			label := output.EscapeLine(j.Label)
			prefix = label + strings.Repeat(" ", width-len(label)) + " | "
		}
		r := views.NewTaskReporter(p)
		r.Pass = func(text string, toStderr bool) { p.Pass(prefix+text, toStderr || tabled) }
		r.Note = func(text string) { p.Note(j.Label + ": " + text) }
		return r
	}
}
