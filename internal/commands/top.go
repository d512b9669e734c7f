package commands

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
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
	sort     string
	limit    int
	limited  bool
}

func newTop(d *Deps) *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:     "top [REF...]",
		Aliases: []string{"resources"},
		GroupID: groupLook,
		Short:   "Show resource usage, its pattern and the likely cause",
		Long: "Show cpu, memory, operations and their trend for the given sandboxes or all running\n" +
			"ones, problems first, with the pattern and its likely cause.\n\n" +
			"Rates need two samples. A memory trend needs 5 s of them; sbx takes them where memory\n" +
			"may be filling up, and elsewhere MIB/MIN says \"short\". The likely cause is the\n" +
			"verdict of ls --stuck, inspect and cleanup, from output, events and processes.\n" +
			"CPU is in percent of one core; operations count from the start of the\n" +
			"sandbox.\n\n" +
			"A sandbox that does not answer has a row without figures, and its error.\n\n" +
			"Sort keys: " + strings.Join(look.TopSortKeys(), ", ") + ". memory is the share of the\n" +
			"limit.",
		Example:           "sbx top\nsbx top --sort memory --limit 10\nsbx top local/k3v9x2mq7a --samples 5 --interval 2s\nsbx top -o json",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: d.completeRefs(true, offerLiving),
	}
	f := cmd.Flags()
	f.IntVar(&o.samples, "samples", 2, "take `N` samples; 1 gives no rates")
	f.StringVar(&o.interval, "interval", "1s", "`DURATION` between two samples")
	f.StringVar(&o.sort, "sort", "problem", "sort by `KEY`, highest first; -KEY reverses")
	f.IntVar(&o.limit, "limit", 0, "at most `N`")
	f.BoolVarP(&o.watch, "watch", "w", false, "sample again every interval until interrupted")
	completeFlag(cmd, "sort", look.TopSortKeys)
	return d.completeVerb(cmd, document{schema: topSchema, shape: output.ShapeList, columns: output.Names(views.UsageColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			o.limited = f.Changed("limit")
			return runTop(ctx, d, p, o, args)
		})
}

func (o topOptions) readRequest() (look.TopRequest, error) {
	if o.samples < 1 || o.samples > maxSamples {
		return look.TopRequest{}, fault.Usage("--samples: %d is not between 1 and %d", o.samples, maxSamples)
	}
	every, err := sandbox.ParseDuration(o.interval)
	if err != nil {
		return look.TopRequest{}, fault.Usage("--interval: %w", err)
	}
	order, err := look.ParseTopOrder(o.sort)
	if err != nil {
		return look.TopRequest{}, err
	}
	if o.limited && o.limit < 1 {
		return look.TopRequest{}, fault.Usage("--limit: %d is not a number from 1", o.limit)
	}
	return look.TopRequest{Samples: o.samples, Every: every, Order: order, Limit: o.limit, Live: o.watch}, nil
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
		req.Typed = args
	}
	s, err := look.NewSampler(ctx, d.Env, req)
	if err != nil {
		return err
	}
	look := func(ctx context.Context, frame watchFrame) error {
		r, err := s.Look(ctx, d.newObserver(p, nil))
		if err != nil {
			return err
		}
		for _, u := range r.Usage {
			frame[u.Sandbox.Ref()] = "not stuck"
			if u.Verdict.Stuck == sandbox.True {
				frame[u.Sandbox.Ref()] = "stuck"
			}
		}
		return views.ShowUsage(p, topSchema, r, d.Process.Name())
	}
	if !o.watch {
		return look(ctx, watchFrame{})
	}
	return repeatLook(ctx, p, req.Every, look)
}
