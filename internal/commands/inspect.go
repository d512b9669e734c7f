package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func newInspect(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect REF",
		GroupID: groupLook,
		Short:   "Show one sandbox in full, and what is suspicious about it",
		Long: "Show one sandbox in full: record, limits, usage, health, timeline, last output,\n" +
			"exit with its cause, what is suspicious and why, and what to type next.\n\n" +
			"Of a sandbox that is gone it shows what is on record (exit 5): who ended it, when,\n" +
			"by which run, and whether that was seen.\n\n" +
			"It reads and changes nothing. What the provider cannot tell is null and said so;\n" +
			"a part that could not be read is an error beside the rest (exit 3).",
		Example:           "sbx inspect local/k3v9x2mq7a\nsbx inspect k3v9 -o json",
		Args:              usageArgs(cobra.ExactArgs(1), "`sbx ls -o name` lists the references"),
		ValidArgsFunction: d.completeRefs(false),
	}
	return d.verb(cmd, document{schema: inspectSchema, shape: output.ShapeItem, columns: output.Names(views.InspectColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return inspect(ctx, d, p, args) })
}

const inspectSchema = "sbx.inspect/v1"

func inspect(ctx context.Context, d *Deps, p *output.Printer, args []string) error {
	words, err := d.words(ctx, args)
	if err != nil {
		return err
	}
	if len(words) > 1 {
		return fault.Usage("inspect shows one sandbox, and %d were given", len(words)).WithHint("`%s ls` shows many", d.Process.Name())
	}
	progress := p.Progress("inspecting " + words[0])
	defer progress.Done()
	f, found, err := d.one(ctx, words[0])
	if err != nil {
		progress.Done()
		return d.inspectRecord(ctx, p, words[0], err)
	}
	s, recordErr := inFull(ctx, f, words[0], found)
	if kind := fault.KindOf(recordErr); kind == fault.KindGone || kind == fault.KindNotFound {
		progress.Done()
		return d.inspectRecord(ctx, p, found.Ref().String(), recordErr)
	}
	seen := f.Observe(ctx, s)
	errs := ops.PartErrors(ctx, seen)
	if recordErr != nil {
		errs = ops.CauseOnce(ctx, append([]error{recordErr}, errs...))
	}
	i := d.judge(seen)
	if ref := s.Ref(); s.State.Ended() {
		if r, found := d.EndInJournals(ctx, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref }); found {
			i.Ended = &r
		}
	}
	progress.Done()
	return output.ShowItem(p, output.ItemSpec[views.Inspection]{
		Schema: inspectSchema, Columns: views.InspectColumns(), Human: func(s *output.Sheet, i views.Inspection) { i.Page(s) },
	}, i, errs...)
}

// judge lets every rule look at what was seen.
func (d *Deps) judge(seen fleet.Observation) views.Inspection {
	t := d.Thresholds(seen.Sandbox)
	verdict := seen.Judge(t, d.Now())
	i := views.Inspection{
		SandboxRow: views.SandboxRow{Sandbox: seen.Sandbox, Verdict: verdict, Now: d.Now()}, Seen: seen,
		Flags: triage.Flags(seen.Sandbox, seen.Signals(t), t, d.Now()), Program: d.Process.Name(),
	}
	if len(seen.Usage.Got) > 0 {
		used := views.UsageRowOf(seen.Sandbox.Ref(), seen.Usage.Got, t, verdict)
		i.Used = &used
	}
	return i
}
