package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// resume goes on with a run: with the document as it was when the run began. What is over stays as it
// is, and everything that was read is read again.
func (r *runner) resume(ctx context.Context) error {
	disk, err := r.env.RunbookRuns()
	if err != nil {
		return err
	}
	found, err := FindRun(disk, r.req.Resume)
	if err != nil {
		return err
	}
	r.run = &found
	if err := r.lock(ctx); err != nil {
		return err
	}
	run, log, err := readLog(disk, found.ID) // as the one before has left it
	if err != nil {
		return err
	}
	if err := r.mayGoOn(&run); err != nil {
		return err
	}
	r.run = &run
	r.run.State, r.run.EndedAt, r.run.Kind, r.run.Error = RunRunning, run.EndedAt, "", ""
	if err := r.adopt(ctx); err != nil {
		return err
	}
	if r.out.log, err = journal.Extend(disk, log, r.env.Now); err != nil {
		return err
	}
	r.run.Resumed = append(r.run.Resumed, Resumption{At: r.env.Now().UTC(), Actor: r.env.Actor()})
	return r.out.write(entryResume, r.env.Actor())
}

func (r *runner) mayGoOn(run *Run) error {
	program := r.env.Process.Name()
	switch {
	case run.Broken != "":
		return fault.New(
			fault.KindRefused, "the record of %s was changed or damaged: %s", run.ID, run.Broken,
		).WithHint("start a new run: `%s runbook run %s`", program, run.Runbook)
	case len(run.Unreadable) > 0: // it may be a step that has acted
		return fault.New(fault.KindRefused, "%w", run.Unreadable.Error(run.ID)).WithHint("start a new run: `%s runbook run %s`", program, run.Runbook)
	case len(run.Steps) == 0:
		return fault.New(fault.KindRefused, "%s was interrupted before it had a plan", run.ID).WithHint("start a new run: `%s runbook run %s`", program, run.Runbook)
	case run.Staged:
		return fault.New(
			fault.KindRefused, "%s was a drill, and what it had staged is gone", run.ID,
		).WithHint("start a new one: `%s drill --runbook %s`", program, run.Runbook)
	case !run.State.CanResume():
		return fault.New(fault.KindRefused, "%s has ended: %s", run.ID, run.State).WithHint("start a new run: `%s runbook run %s`", program, run.Runbook)
	case r.req.Procedure != "" && r.req.Procedure != run.Procedure:
		return fault.Usage("--resume goes on with what was chosen, so --procedure has no meaning with it")
	case r.req.Word != "" && r.req.Word != run.Word:
		return fault.Usage("--resume goes on with what was chosen, so --ref has no meaning with it").WithHint("start a new run about %s", r.req.Word)
	case r.req.DryRun:
		return fault.Usage("--resume and --dry-run exclude each other").WithHint("a dry run of the runbook shows what would be done now")
	}
	return nil
}

// adopt takes the state of a run that was cut off.
func (r *runner) adopt(ctx context.Context) error {
	book, found := runbook.Parse(r.run.File, []byte(r.run.Document))
	if book == nil {
		return fault.New(fault.KindRefused, "the record of %s has no runbook that this sbx understands", r.run.ID).WithHint("start a new run")
	}
	var wrong []error
	for _, f := range append(found, book.Lint(runbook.Context{Now: r.env.Now()})...) {
		if f.Severity == runbook.Error {
			wrong = append(wrong, f.AsError(fault.KindRefused))
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	r.book = book
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.decided = r.run.decided
	for i := range r.run.Steps {
		s := &r.run.Steps[i]
		if s.State == Running {
			s.State = Pending
		}
		for _, id := range r.documents[s.ID].Collect { // read again as soon as it is needed
			if s.State == Done {
				r.facts.once[sourceOf(string(id))] = true
			}
		}
		if s.Section == SectionVerification && s.State.IsOver() && s.Verdict != sandbox.True {
			s.State = Pending
		}
	}
	return nil
}

// goOn takes over what is known of an act that was interrupted; nil = there was none.
func (a *Act) goOn(before *Act) {
	if before != nil {
		a.IntentAt, a.EndedAt, a.RunID = before.IntentAt, before.EndedAt, before.RunID
	}
}

// beganBefore is an objection that says of an act that it was interrupted; nil = there was none.
func (a *Act) beganBefore(objection string) string {
	if a == nil {
		return objection
	}
	return strings.TrimPrefix(objection+"; it was begun before, at "+a.IntentAt.Format(time.RFC3339)+", and was interrupted", "; ")
}
