package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/task"
	"sbx/internal/views"
)

// tally counts what became of a batch.
type tally struct {
	jobs, ended, completed, before, failed int
	codes                                  map[int]int // of those that failed
	first                                  error       // a verdict of the first that failed
}

func (t *tally) add(o outcome) {
	t.ended++
	switch {
	case o.verdict == nil && o.before:
		t.completed++
		t.before++
	case o.verdict == nil:
		t.completed++
	default:
		t.failed++
		t.codes[exitCode(o.verdict)]++
		t.first = cmp.Or(t.first, o.verdict)
	}
}

func exitCode(err error) int {
	if own, ok := errors.AsType[views.ProgramExit](err); ok {
		return own.Code
	}
	return fault.ExitCode(err)
}

// verdict is the error that a batch's end is for the process: nothing when all is
// completed, the one thing that all failed with, else that a part of it failed.
func (t *tally) verdict(ctx context.Context) error {
	switch {
	case t.failed == 0 && t.ended == t.jobs:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.failed == t.jobs && len(t.codes) == 1:
		return t.first
	}
	return fault.New(fault.KindPartial, "%d of %d tasks did not complete", t.jobs-t.completed, t.jobs).
		WithHint("`sbx tasks show TASK` has the evidence of each; --retry-failed launches them once more")
}

func (t *tally) words() string {
	words := []string{fmt.Sprintf("%d of %d done", t.ended, t.jobs)}
	if t.failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", t.failed))
	}
	return strings.Join(words, ", ")
}

// report shows the outcomes of a batch as they come: on stderr for people, whose
// stdout has the programs' output, else as a document.
func (c *crew) report(ctx context.Context, jobs []job, outcomes <-chan outcome) error {
	l, t := c.l, &tally{jobs: len(jobs), codes: map[int]int{}}
	progress := l.p.Progress("tasks")
	defer progress.Done()
	list, err := output.NewList(l.p, output.ListSpec[outcome]{
		Schema: l.schema, Columns: output.Of(views.TaskItem(), func(o outcome) views.TaskRow { return o.row(l) }), Aside: func(o outcome) string { return o.aside(l) },
	})
	if err != nil {
		return errors.Join(err, drained(outcomes))
	}
	for o := range outcomes {
		t.add(o)
		progress.Update(t.words())
		l.logged(o)
		listed(list, o)
	}
	progress.Done()
	list.Set("tasks", t.jobs)
	list.Set("completed", t.completed)
	list.Set("not_launched", t.jobs-t.ended)
	list.Remark(t.sum())
	verdict := cmp.Or(t.verdict(ctx), c.left)
	list.Fail(c.left)
	if ctx.Err() != nil || t.ended < t.jobs {
		list.Fail(verdict)
	}
	return list.CloseAs(verdict)
}

// drained waits for what was begun, when nobody can be told of it.
func drained(outcomes <-chan outcome) error {
	var errs []error
	for o := range outcomes {
		errs = append(errs, o.err)
	}
	return errors.Join(errs...)
}

// listed adds an outcome to the document. A program's own exit is no error of sbx.
func listed(list *output.List[outcome], o outcome) {
	var err error
	switch _, own := errors.AsType[views.ProgramExit](o.verdict); {
	case o.verdict == nil, own:
		err = list.Add(o)
	case o.task.ID == "":
		list.Fail(fault.Placed(o.verdict, "", o.label))
		return
	default:
		err = list.AddFailed(o, o.verdict)
	}
	if err == nil {
		_ = list.Flush() // a stdout that is gone is told at the end
	}
}

// sum is the last line for people.
func (t *tally) sum() string {
	text := fmt.Sprintf("%d tasks: %d completed", t.jobs, t.completed)
	if t.before > 0 {
		text += fmt.Sprintf(" (%d of them before; --again launches them anew)", t.before)
	}
	if t.failed > 0 {
		text += fmt.Sprintf(", %d did not", t.failed)
	}
	if n := t.jobs - t.ended; n > 0 {
		text += fmt.Sprintf(", %d not launched", n)
	}
	return text
}

// aside is what people read of an outcome, if anything is new to them.
func (o outcome) aside(l *launching) string {
	if o.before && o.verdict == nil {
		return ""
	}
	return l.line(o)
}

// line is an outcome for people.
func (l *launching) line(o outcome) string {
	r := o.row(l)
	text := o.label + " (" + o.task.ID + "): " + ops.WithDetail(string(o.task.State), r.Detail())
	if o.before {
		text += " before"
	}
	if a := o.task.Last(); a != nil && o.task.State != task.Completed {
		text += ", " + views.AttemptLine(*a)
	}
	if len(o.task.Attempts) > 1 {
		text += fmt.Sprintf(", %d attempts", len(o.task.Attempts))
	}
	if o.verdict != nil && !o.task.State.Over() {
		text += ": " + o.verdict.Error()
	}
	return text
}

// logged writes what this run did of a job to the joblog.
func (l *launching) logged(o outcome) {
	if !o.before && o.task.ID != "" {
		l.joblog(o.task, o.seq)
	}
}
