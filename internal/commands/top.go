package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const topSchema = "sbx.top/v1"

// maxSamples bounds what top holds in memory.
const maxSamples = 1000

type topOptions struct {
	samples  int
	interval string
	watch    bool
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
	return d.completeVerb(cmd, document{schema: topSchema, shape: output.ShapeList, columns: output.Names(views.UsageColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return runTop(ctx, d, p, o, args) })
}

func (o topOptions) readRequest() (ops.TopRequest, error) {
	if o.samples < 1 || o.samples > maxSamples {
		return ops.TopRequest{}, fault.Usage("--samples: %d is not between 1 and %d", o.samples, maxSamples)
	}
	every, err := sandbox.ParseDuration(o.interval)
	if err != nil {
		return ops.TopRequest{}, fault.Usage("--interval: %w", err)
	}
	return ops.TopRequest{Samples: o.samples, Every: every}, nil
}

func runTop(ctx context.Context, d *Deps, p *output.Printer, o topOptions, args []string) error {
	req, err := o.readRequest()
	if err != nil {
		return err
	}
	if len(args) > 0 {
		if req.Words, err = d.readRefWords(ctx, args); err != nil {
			return err
		}
	}
	s, err := ops.NewSampler(ctx, d.Env, req)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) error {
		r, err := s.Look(ctx, d.newObserver(p, nil))
		if err != nil {
			return err
		}
		return views.ShowUsage(p, topSchema, r, d.Process.Name())
	}
	if !o.watch {
		return look(ctx)
	}
	return repeatLook(ctx, p, req.Every, look)
}
