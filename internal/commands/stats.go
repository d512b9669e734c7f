package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func newStats(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stats",
		GroupID: groupLook,
		Short:   "Count sandboxes per provider, beside the limits of the runbook",
		Long: "Count sandboxes per provider, beside the limits of the runbook: how many are active,\n" +
			"how old they are, how many are stuck, how many ran into a time limit.\n\n" +
			"Ages are those of running sandboxes. What a provider does not tell is null, never 0.\n" +
			"A provider that cannot be asked is an error (exit 3) and in no figure; json, ndjson\n" +
			"and yaml carry the total of the others.",
		Example: "sbx stats\nsbx stats -o json\nsbx stats --columns provider,active,stuck",
		Args:    usageArgs(noArgs, "`sbx inspect REF` shows one sandbox"),
	}
	return d.verb(cmd, document{schema: "sbx.stats/v1", shape: output.ShapeList, columns: output.Names(statsColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return stats(ctx, d, p) })
}

func stats(ctx context.Context, d *Deps, p *output.Printer) error {
	f, err := d.Fleet(ctx)
	if err != nil {
		return err
	}
	list, err := output.NewList(p, output.ListSpec[statsRow]{Schema: "sbx.stats/v1", Columns: statsColumns()})
	if err != nil {
		return err
	}
	progress := p.Progress(fmt.Sprintf("asking %d providers", len(f.Names())))
	defer progress.Done()
	all := f.Stats(ctx)
	progress.Done()
	var rows []statsRow
	var errs []error
	for _, s := range all {
		if s.Err != nil {
			errs = append(errs, s.Err)
			continue
		}
		if s.ItemsErr != nil {
			errs = append(errs, s.ItemsErr)
		}
		rows = append(rows, d.statsRow(s))
	}
	for _, err := range once(ctx, errs) {
		list.Fail(err)
	}
	list.Set("total", fieldsOf(figureColumns(), d.total(rows)))
	for _, row := range rows {
		if err := list.Add(row); err != nil {
			return err
		}
	}
	return list.Close()
}

// statsRow judges what one provider told.
func (d *Deps) statsRow(s fleet.ProviderStats) statsRow {
	now := d.now()
	row := statsRow{
		provider: s.Provider, providerType: s.ProviderType,
		limits: d.thresholds(sandbox.Sandbox{Provider: s.Provider, ProviderType: s.ProviderType}),
		counts: triage.FleetSignals{
			Active: s.Stats.Active, Provisioning: s.Stats.Provisioning, Terminating: s.Stats.Terminating,
			TotalCreated: s.Stats.TotalCreated, TotalDestroyed: s.Stats.TotalDestroyed, TimedOut: s.Stats.TimedOut,
		},
	}
	if s.ItemsErr != nil {
		return row
	}
	row.stuck = new(int64)
	for _, box := range s.Items {
		if age, source := box.Age(now); box.State == sandbox.StateRunning && source != sandbox.AgeUnknown {
			row.ages = append(row.ages, age)
		}
		if triage.Stuck(box, triage.Signals{}, d.thresholds(box), now).Verdict == sandbox.True {
			*row.stuck++
		}
	}
	return row
}

// total adds up what the providers told. A figure that one of them does not
// tell has no total.
func (d *Deps) total(rows []statsRow) statsRow {
	sum := statsRow{limits: d.thresholds(sandbox.Sandbox{})}
	if len(rows) == 0 {
		return sum
	}
	add := func(of func(statsRow) *int64) *int64 {
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
	sum.counts = triage.FleetSignals{
		Active:         add(func(r statsRow) *int64 { return r.counts.Active }),
		Provisioning:   add(func(r statsRow) *int64 { return r.counts.Provisioning }),
		Terminating:    add(func(r statsRow) *int64 { return r.counts.Terminating }),
		TotalCreated:   add(func(r statsRow) *int64 { return r.counts.TotalCreated }),
		TotalDestroyed: add(func(r statsRow) *int64 { return r.counts.TotalDestroyed }),
		TimedOut:       add(func(r statsRow) *int64 { return r.counts.TimedOut }),
	}
	sum.stuck = add(func(r statsRow) *int64 { return r.stuck })
	if sum.stuck == nil {
		return sum // one listing is missing, so the ages are not all there
	}
	for _, row := range rows {
		sum.ages = append(sum.ages, row.ages...)
	}
	return sum
}
