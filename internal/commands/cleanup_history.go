package commands

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/output"
	"sbx/internal/sandbox"
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
		extended, err := journal.Extend(disk, log, r.d.now)
		if err != nil {
			return err
		}
		w := &runLog{Writer: extended, d: r.d, p: p, begin: h.Begin, began: h.StartedAt}
		defer w.close()
		if err := w.Append(cleanup.EntryResume, r.d.actor()); err != nil {
			return err
		}
		r.id, r.rule = h.RunID, h.Begin.Plan.Rule
		r.rule.Unowned = true // whose they are was judged when the run began, by what --provider named then; an owner that changed keeps them
		r.survey = h.Survey(r.d.now())
		return r.end(ctx, p, w, h.Resume())
	})
}

func (r *cleanupRun) mayGoOn(ctx context.Context, p *output.Printer, h cleanup.History) error {
	open := len(h.Open())
	switch {
	case h.Begin.Verb != "" && h.Begin.Verb != verbCleanup:
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

// histories reads the newest runs of a verb, at most limit of them; 0 = all, "" = any
// verb. One that cannot be read is an error beside the others.
func (d *Deps) histories(ctx context.Context, verb string, limit int) ([]cleanup.History, []error) {
	list, errs := d.ownHistories(verb, limit)
	shared, err := d.SharedRuns(ctx, limit)
	if err != nil {
		errs = append(errs, err)
	}
	for _, run := range shared {
		here := slices.ContainsFunc(list, func(h cleanup.History) bool { return h.RunID == run.ID })
		if !here && (verb == "" || run.Verb == verb) {
			list = append(list, historyOfShared(run))
		}
	}
	slices.SortStableFunc(list, func(a, b cleanup.History) int { return b.StartedAt.Compare(a.StartedAt) })
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, errs
}

// CleanupRuns are the newest cleanup runs on record, the newest first, as far as they can
// be read.
func (d *Deps) CleanupRuns(ctx context.Context, limit int) []cleanup.History {
	runs, _ := d.histories(ctx, verbCleanup, limit) // what cannot be read is not known; `cleanup runs` says why
	return runs
}

// ownHistories are those of this machine.
func (d *Deps) ownHistories(verb string, limit int) ([]cleanup.History, []error) {
	disk, err := d.Journals()
	if err != nil {
		return nil, []error{err}
	}
	runs, err := journal.Runs(disk)
	if err != nil {
		return nil, []error{err}
	}
	slices.Reverse(runs)
	var list []cleanup.History
	var errs []error
	var logs []journal.Log
	for _, run := range runs {
		if limit > 0 && len(list) == limit {
			break
		}
		h, log, err := cleanup.ScanRun(disk, run)
		logs = append(logs, log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if log.Count == 0 && !log.Torn && log.Broken == "" {
			errs = append(errs, fault.New(fault.KindFound, "the journal of %s holds nothing: it was cut off before its first line, or somebody emptied it", run).
				WithHint("a run that is beginning right now has none yet; `%s cleanup runs` shows what is left", d.Process.Name()))
		}
		if h.Broken != "" {
			errs = append(errs, fault.New(fault.KindFound, "the journal of %s cannot be trusted: %s", run, h.Broken))
		}
		if verb == "" || h.Begin.Verb == verb {
			list = append(list, h)
		}
	}
	for _, run := range journal.Unrooted(logs) {
		errs = append(errs, fault.New(fault.KindFound, "the journal of the run before %s is missing", run).
			WithHint("somebody removed it, or what it said; `%s cleanup runs` shows what is left", d.Process.Name()))
	}
	return list, errs
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
	doc := document{schema: "sbx.cleanup.runs/v1", shape: output.ShapeList, columns: output.Names(runColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		list, errs := d.histories(ctx, verbCleanup, limit)
		return showRows(p, output.ListSpec[cleanup.History]{
			Schema: doc.schema, Columns: runColumns(), Empty: "no run is recorded yet; `" + d.Process.Name() + " cleanup --yes` writes one",
		}, list, errs...)
	})
}

func runColumns() []output.Column[cleanup.History] {
	type row = cleanup.History
	return []output.Column[row]{
		{Name: "run_id", Head: "RUN", Value: func(h row) any { return h.RunID }},
		{Name: "started_at", Value: func(h row) any { return output.Time(h.StartedAt) }},
		{Name: "ended_at", Level: output.Wide, Value: func(h row) any { return output.Time(h.EndedAt) }},
		{Name: "host", Level: output.Wide, Value: func(h row) any { return h.Begin.Host }},
		{Name: "selected", Value: func(h row) any { return h.Counts().Selected }},
		{Name: "counts", Value: func(h row) any { return h.Counts() }, Text: func(h row) string { return countsText(h.Counts()) }},
		{Name: "exit_code", Head: "EXIT", Value: func(h row) any {
			if h.End == nil {
				return nil
			}
			return h.End.ExitCode
		}},
		{Name: "resumable", Value: func(h row) any { return h.Resumable() }},
	}
}

// countsText names the outcomes that there are: "18 verified, 2 changed".
func countsText(c fleet.Counts) string {
	text := ""
	for _, o := range sandbox.Outcomes() {
		if n := c.Of(o); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, o)
		}
	}
	if text == "" {
		return "-"
	}
	return text
}

// outcomeRow is one item of a run.
type outcomeRow struct {
	item   cleanup.Item
	result cleanup.Result
	before *cleanup.Intent
}

func outcomeColumns() []output.Column[outcomeRow] {
	type row = outcomeRow
	return []output.Column[row]{
		{Name: "ref", Value: func(r row) any { return r.item.Ref.String() }},
		{Name: "outcome", Value: func(r row) any { return r.result.Outcome }},
		{Name: "reason", Value: func(r row) any { return r.result.Reason }},
		{Name: "duration_seconds", Head: "TOOK", Value: func(r row) any { return output.Seconds(time.Duration(r.result.Seconds * float64(time.Second))) }},
		{Name: "selected_because", Head: "WHY", Value: func(r row) any { return r.item.Reason }},
		{Name: "evidence", Level: output.Extra, Value: func(r row) any { return evidence(r.result.Evidence) }},
		{Name: "before", Level: output.Extra, Value: func(r row) any { return r.before }},
	}
}

func showHistory(p *output.Printer, schema string, h cleanup.History) error {
	list, err := output.NewList(p, output.ListSpec[outcomeRow]{Schema: schema, Columns: outcomeColumns(), Empty: "this run selected nothing"})
	if err != nil {
		return err
	}
	list.Set("run_id", h.RunID)
	list.Set("started_at", output.Time(h.StartedAt))
	list.Set("ended_at", output.Time(h.EndedAt))
	list.Set("actor", h.Begin.Actor)
	list.Set("rule", h.Begin.Plan.Rule)
	list.Set("guards", h.Begin.Guards)
	list.Set("profiles", h.Begin.Profiles)
	list.Set("kept", h.Begin.Kept)
	list.Set("counts", h.Counts())
	list.Set("verb", h.Begin.Verb)
	list.Set("resumable", h.Begin.Verb == verbCleanup && h.Resumable())
	for _, i := range h.Begin.Plan.Items {
		row := outcomeRow{item: i, result: h.Results[i.Ref]}
		row.result.Outcome = h.Outcome(i.Ref)
		if before, ok := h.Intents[i.Ref]; ok {
			row.before = &before
		}
		if err := list.Add(row); err != nil {
			return err
		}
	}
	if h.Broken != "" {
		list.Fail(fault.New(fault.KindFound, "the journal of %s cannot be trusted: %s", h.RunID, h.Broken))
	}
	if h.Sums != nil {
		list.Incomplete()
		list.WhenEmpty("")
		p.Note("what became of each sandbox is in the journal of " + h.Begin.Host + ", where it ran; together: " + countsText(h.Counts()))
	}
	list.Succeeded()
	return list.Close()
}
