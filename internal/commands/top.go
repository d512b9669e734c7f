package commands

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// maxSamples bounds what top holds in memory.
const maxSamples = 1000

type topOptions struct {
	samples  int
	interval string
	watch    bool

	words []string      // none = every running sandbox
	every time.Duration // interval, read
}

func newTop(d *Deps) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:     "top [REF...]",
		Aliases: []string{"resources"},
		GroupID: groupLook,
		Short:   "Show what sandboxes use, and what that looks like",
		Long: "Show cpu, memory, operations and their trend, of the given sandboxes or of all that\n" +
			"run, the busiest first, with the pattern and its likely cause.\n\n" +
			"Rates need two samples. A trend of memory needs 5 s of them: where memory may be\n" +
			"filling up they are taken, and elsewhere MIB/MIN says \"short\". The likely cause is the\n" +
			"verdict of ls --stuck, inspect and cleanup: output, events and processes are looked\n" +
			"at, too. CPU is in percent of one core, operations are counted from the start of the\n" +
			"sandbox.",
		Example:           "sbx top\nsbx top local/k3v9x2mq7a --samples 5 --interval 2s\nsbx top -o json",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: d.completeRefs(true),
	}
	f := cmd.Flags()
	f.IntVar(&o.samples, "samples", 2, "judge `N` samples; 1 tells no rates")
	f.StringVar(&o.interval, "interval", "1s", "`DURATION` between two samples")
	f.BoolVarP(&o.watch, "watch", "w", false, "sample again every interval until interrupted")
	return d.verb(cmd, document{schema: "sbx.top/v1", shape: output.ShapeList, columns: output.Names(views.UsageColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return top(ctx, d, p, o, args) })
}

func (o topOptions) validate() (topOptions, error) {
	if o.samples < 1 || o.samples > maxSamples {
		return o, fault.Usage("--samples: %d is not between 1 and %d", o.samples, maxSamples)
	}
	every, err := sandbox.ParseDuration(o.interval)
	if err != nil {
		return o, fault.Usage("--interval: %w", err)
	}
	o.every = every
	return o, nil
}

func top(ctx context.Context, d *Deps, p *output.Printer, o topOptions, args []string) error {
	o, err := o.validate()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if o.words, err = d.words(ctx, args); err != nil {
			return err
		}
	}
	f, err := d.Fleet(ctx)
	if err != nil {
		return err
	}
	s := newSampler(d, f, o)
	look := func(ctx context.Context) error { return topOnce(ctx, d, p, s) }
	if !o.watch {
		return look(ctx)
	}
	return repeat(ctx, p, o.every, look)
}

// topOnce prints one look.
func topOnce(ctx context.Context, d *Deps, p *output.Printer, s *sampler) error {
	list, err := output.NewList(p, output.ListSpec[views.UsageRow]{
		Schema: "sbx.top/v1", Columns: views.UsageColumns(),
		Empty: "no sandbox runs; `" + d.Process.Name() + " ls` shows what there is",
	})
	if err != nil {
		return err
	}
	progress := p.Progress("sampling")
	defer progress.Done()
	rows, errs, err := s.look(ctx, progress)
	if err != nil {
		return err
	}
	progress.Done()
	for _, err := range errs {
		list.Fail(err)
	}
	for _, row := range rows {
		if err := list.Add(row); err != nil {
			return err
		}
	}
	return list.Close()
}
