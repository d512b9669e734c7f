package ops

import (
	"context"
	"fmt"
	"strconv"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
)

// goOn resumes a run that was cut off: what its journal shows to be done is left
// alone, everything else is read again and brought to its end.
func (r *cleanupRun) goOn(ctx context.Context) (*CleanupResult, error) {
	disk, err := r.env.Journals()
	if err != nil {
		return nil, err
	}
	return r.withRunLock(ctx, func(ctx context.Context) (*CleanupResult, error) {
		h, log, err := cleanup.ScanRun(disk, r.req.Resume)
		if err != nil {
			return nil, err
		}
		if err := r.mayGoOn(ctx, h); err != nil {
			return nil, err
		}
		if r.fleet, err = r.env.Only(ctx, h.Profiles()...); err != nil {
			return nil, err
		}
		extended, err := journal.Extend(disk, log, r.env.Now)
		if err != nil {
			return nil, err
		}
		w := &RunJournal{Writer: extended, Env: r.env, Watch: r.watch, Begin: h.Begin, Began: h.StartedAt}
		defer w.Release()
		if err := w.Append(cleanup.EntryResume, r.env.Actor()); err != nil {
			return nil, err
		}
		r.id, r.rule = h.RunID, h.Begin.Plan.Rule
		r.rule.Unowned = true // whose they are was judged when the run began, by what --provider named then; an owner that changed keeps them
		r.survey = h.Survey(r.env.Now())
		return r.endTargets(ctx, w, h.Resume())
	})
}

func (r *cleanupRun) mayGoOn(ctx context.Context, h cleanup.History) error {
	open := len(h.Open())
	switch {
	case h.Begin.Verb != "" && h.Begin.Verb != VerbCleanup:
		return fault.Usage("%s is a run of %s, which is not resumed", h.RunID, h.Begin.Verb).WithHint("run it again: it looks at everything anew")
	case h.End != nil && h.End.Refused:
		return fault.New(fault.KindRefused, "%s was refused and ended nothing: %s", h.RunID, h.End.Error).WithHint("start a new run")
	case h.Broken != "":
		return fault.New(fault.KindRefused, "the journal of %s cannot be trusted: %s", h.RunID, h.Broken).WithHint("start a new run")
	case h.StartedAt.IsZero():
		return fault.New(fault.KindRefused, "%s was cut off before it had a plan", h.RunID).WithHint("start a new run")
	}
	if open == 0 {
		r.watch.Note(h.RunID + " has nothing left to do")
		return nil
	}
	return r.mayAct(ctx, fmt.Sprintf("%s has %d of %d sandboxes left", h.RunID, open, len(h.Begin.Plan.Items)), open)
}

// mayAct wants --yes, or the count typed on a terminal.
func (r *cleanupRun) mayAct(ctx context.Context, what string, n int) error {
	if r.req.Yes {
		return nil
	}
	refusal := fault.New(fault.KindRefused, "%s, and nobody allowed it", what).WithHint("repeat with --yes")
	if !r.watch.Attended() {
		return refusal
	}
	r.watch.Note(what)
	allowed, err := r.watch.Confirm(ctx, Question{Prompt: fmt.Sprintf("type %d to end them: ", n), Word: strconv.Itoa(n)})
	if err != nil {
		return err
	}
	if !allowed {
		return refusal
	}
	return nil
}
