package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

type statsOptions struct{ look bool }

func newStats(d *Deps) *cobra.Command {
	var o statsOptions
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupLook,
		Short:   "Count sandboxes per provider, beside the limits of the runbook",
		Long: "Count sandboxes per provider, beside the limits of the runbook: how many are active,\n" +
			"how old they are, how many are stuck, how many ran into a time limit.\n\n" +
			"Whether a running sandbox is stuck cannot be told from a list: `unjudged` counts those\n" +
			"that are old enough and were not looked at, or cannot be judged. --look asks them\n" +
			"themselves (output, events, processor), as a cleanup does.\n\n" +
			"Below the table stand the questions of the runbook whose answer is yes, by what the\n" +
			"runs of cleanup have recorded; `flags` in json has all of them. Where a provider has no\n" +
			"counter of time-outs, the rate is that of the last day's tasks, from 20 attempts on.\n\n" +
			"Ages are those of running sandboxes. What a provider does not tell is null, never 0.\n" +
			"A provider that cannot be asked is an error (exit 3) and in no figure; json, ndjson\n" +
			"and yaml carry the total of the others.",
		Example: "sbx stats\nsbx stats --look\nsbx stats -o json\nsbx stats --columns provider,active,stuck",
		Args:    usageArgs(noArgs, "`sbx inspect REF` shows one sandbox"),
	}
	cmd.Flags().BoolVar(&o.look, "look", false, "look at those that may be stuck whether they work")
	return d.verb(cmd, document{schema: "sbx.stats/v1", shape: output.ShapeList, columns: output.Names(views.StatsColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return stats(ctx, d, p, o) })
}

func stats(ctx context.Context, d *Deps, p *output.Printer, o statsOptions) error {
	f, err := d.Fleet(ctx)
	if err != nil {
		return err
	}
	list, err := output.NewList(p, output.ListSpec[views.StatsRow]{Schema: "sbx.stats/v1", Columns: views.StatsColumns()})
	if err != nil {
		return err
	}
	progress := p.Progress(fmt.Sprintf("asking %d providers", len(f.Names())))
	defer progress.Done()
	providers := f.Stats(ctx)
	if o.look {
		progress.Update("looking at those that may be stuck")
	}
	counted, errs := d.TakeCensus(ctx, f, providers, o.look)
	var rows []views.StatsRow
	for _, s := range providers {
		if s.Err != nil {
			errs = append(errs, s.Err)
			continue
		}
		if s.ItemsErr != nil {
			errs = append(errs, s.ItemsErr)
		}
		rows = append(rows, d.statsRow(s, counted[s.Provider]))
	}
	progress.Done()
	for _, err := range ops.CauseOnce(ctx, errs) {
		list.Fail(err)
	}
	var all ops.Census
	for _, row := range rows {
		all.Join(row.Census)
	}
	remarks := []string{all.Remark(d.Process.Name() + " stats --look")}
	for _, row := range rows {
		remarks = append(remarks, row.Raised()...)
	}
	list.Remark(strings.Join(slices.DeleteFunc(remarks, func(r string) bool { return r == "" }), "; "))
	list.Set("total", views.Object(views.FigureColumns(), d.total(rows)))
	for _, row := range rows {
		if err := list.Add(row); err != nil {
			return err
		}
	}
	return list.Close()
}

// statsRow judges what one provider told.
func (d *Deps) statsRow(s fleet.ProviderStats, counted ops.Census) views.StatsRow {
	now := d.Now()
	row := views.StatsRow{
		Provider: s.Provider, ProviderType: s.ProviderType,
		Limits: d.Thresholds(sandbox.Sandbox{Provider: s.Provider, ProviderType: s.ProviderType}),
	}
	row.Counts = s.Signals(row.Limits.StuckAge, now)
	row.Flags = triage.FleetFlags(row.Counts, row.Limits, now)
	if s.ItemsErr != nil {
		return row
	}
	for _, box := range s.Items {
		if age, source := box.Age(now); box.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
			row.Ages = append(row.Ages, age)
		}
	}
	row.Census, row.Stuck, row.Unjudged = counted, &counted.Stuck, &counted.Unjudged
	return row
}

// total adds up what the providers told. A figure that one of them does not
// tell has no total.
func (d *Deps) total(rows []views.StatsRow) views.StatsRow {
	sum := views.StatsRow{Limits: d.Thresholds(sandbox.Sandbox{})}
	if len(rows) == 0 {
		return sum
	}
	add := func(of func(views.StatsRow) *int64) *int64 {
		total := new(int64)
		for _, row := range rows {
			n := of(row)
			if n == nil {
				return nil
			}
			*total += *n
		}
		return total
	}
	sum.Counts = triage.FleetSignals{
		Active:         add(func(r views.StatsRow) *int64 { return r.Counts.Active }),
		Provisioning:   add(func(r views.StatsRow) *int64 { return r.Counts.Provisioning }),
		Terminating:    add(func(r views.StatsRow) *int64 { return r.Counts.Terminating }),
		TotalCreated:   add(func(r views.StatsRow) *int64 { return r.Counts.TotalCreated }),
		TotalDestroyed: add(func(r views.StatsRow) *int64 { return r.Counts.TotalDestroyed }),
		TimedOut:       add(func(r views.StatsRow) *int64 { return r.Counts.TimedOut }),
	}
	sum.Stuck = add(func(r views.StatsRow) *int64 { return r.Stuck })
	sum.Unjudged = add(func(r views.StatsRow) *int64 { return r.Unjudged })
	if sum.Stuck == nil {
		return sum // one listing is missing, so the ages are not all there
	}
	for _, row := range rows {
		sum.Ages = append(sum.Ages, row.Ages...)
	}
	return sum
}
