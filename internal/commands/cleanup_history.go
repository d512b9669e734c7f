package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

// goOn resumes a run that was cut off: what its journal shows to be done is left
// alone, everything else is read again and brought to its end.
func (r *cleanupRun) goOn(ctx context.Context, p *output.Printer) error {
	disk, err := r.d.Journals()
	if err != nil {
		return err
	}
	return r.locked(ctx, p, func(ctx context.Context) error {
		h, log, err := cleanup.ScanRun(disk, r.o.resume)
		if err != nil {
			return err
		}
		if err := r.mayGoOn(ctx, p, h); err != nil {
			return err
		}
		if r.fleet, err = r.d.Only(ctx, h.Profiles()...); err != nil {
			return err
		}
		extended, err := journal.Extend(disk, log, r.d.Now)
		if err != nil {
			return err
		}
		w := &ops.RunJournal{Writer: extended, Env: r.d.Env, Watch: p, Begin: h.Begin, Began: h.StartedAt}
		defer w.Release()
		if err := w.Append(cleanup.EntryResume, r.d.Actor()); err != nil {
			return err
		}
		r.id, r.rule = h.RunID, h.Begin.Plan.Rule
		r.rule.Unowned = true // whose they are was judged when the run began, by what --provider named then; an owner that changed keeps them
		r.survey = h.Survey(r.d.Now())
		return r.end(ctx, p, w, h.Resume())
	})
}

func (r *cleanupRun) mayGoOn(ctx context.Context, p *output.Printer, h cleanup.History) error {
	open := len(h.Open())
	switch {
	case h.Begin.Verb != "" && h.Begin.Verb != ops.VerbCleanup:
		return fault.Usage("%s is a run of %s, which is not resumed", h.RunID, h.Begin.Verb).WithHint("run it again: it looks at everything anew")
	case h.End != nil && h.End.Refused:
		return fault.New(fault.KindRefused, "%s was refused and ended nothing: %s", h.RunID, h.End.Error).WithHint("start a new run")
	case h.Broken != "":
		return fault.New(fault.KindRefused, "the journal of %s cannot be trusted: %s", h.RunID, h.Broken).WithHint("start a new run")
	case h.StartedAt.IsZero():
		return fault.New(fault.KindRefused, "%s was cut off before it had a plan", h.RunID).WithHint("start a new run")
	}
	if open == 0 {
		p.Note(h.RunID + " has nothing left to do")
		return nil
	}
	return r.mayAct(ctx, p, fmt.Sprintf("%s has %d of %d sandboxes left", h.RunID, open, len(h.Begin.Plan.Items)), open)
}

func newCleanupRuns(d *Deps) *cobra.Command {
	limit := 20
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the bulk endings of this machine, the newest first",
		Long: "List the bulk endings of this machine, the newest first.\n\n" +
			"Every run that was allowed to act has a journal, also one that a guard refused.\n" +
			"A journal that was changed afterwards is said to be (exit 10).",
		Example: "sbx cleanup runs\nsbx cleanup runs -o json",
		Args:    usageArgs(noArgs, "`sbx cleanup show RUN` shows one"),
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "at most `N`; 0 = all")
	doc := document{schema: "sbx.cleanup.runs/v1", shape: output.ShapeList, columns: output.Names(views.RunColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		list, errs := d.Histories(ctx, ops.VerbCleanup, limit)
		return views.ShowRows(p, output.ListSpec[cleanup.History]{
			Schema: doc.schema, Columns: views.RunColumns(), Empty: "no run is recorded yet; `" + d.Process.Name() + " cleanup --yes` writes one",
		}, list, errs...)
	})
}
