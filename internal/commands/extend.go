package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const extendSchema = "sbx.extend/v1"

func newExtend(d *Deps) *cobra.Command {
	var req end.ExtendRequest
	var ttl, until string
	var dry bool
	cmd := &cobra.Command{
		Use:     "extend REF...",
		GroupID: groupAct,
		Short:   "Give sandboxes more time, never less",
		Long: "Give sandboxes more time: move the end that their provider has for them.\n\n" +
			"An end that is not later than the present one is refused (exit 11), and so is what does\n" +
			"not run: nothing is woken or resumed. Each sandbox is read again just before the\n" +
			"request and after it: exit 8 means that the later end is not to be seen, exit 3 that the\n" +
			"provider gave less than was asked. A request is sent once.\n\n" +
			"Exit 9: the provider cannot move an end; `sbx providers` shows which can. What a task\n" +
			"works in, or has kept, ends with the task. `sbx keep` keeps a sandbox from being\n" +
			"terminated by sbx; it moves no end.",
		Example: "sbx extend local/k3v9x2mq7a --ttl 1h\n" +
			"sbx extend local/k3v9x2mq7a --until 2026-11-20T18:00Z\n" +
			"sbx ls --state running -o name | sbx extend --ttl 2h --dry-run -",
		Args:              usageArgs(atLeastOneArg("REF"), "name a sandbox: sbx extend REF --ttl 1h"),
		ValidArgsFunction: d.completeRefs(true, offerLiving),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&ttl, "ttl", "", "they end `DURATION` from now")
	f.StringVar(&until, "until", "", "they end at `TIME`: 2026-11-20T18:00Z, 18:00 (today, UTC)")
	f.BoolVar(&dry, "dry-run", false, "print the plan and change nothing")
	f.BoolVar(&req.Yes, "yes", false, "extend more than 5 without confirmation")
	f.StringSliceVar(&req.Production, "production", nil, "allow production profile `NAME` (repeatable); not needed for one REF")
	completeFlag(cmd, "production", func() []string { return d.ProductionNames() })
	doc := document{schema: extendSchema, shape: output.ShapeList, columns: output.Names(views.ExtendColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) (err error) {
		if req.TTL, err = optionalDuration("--ttl", ttl); err != nil {
			return err
		}
		if until != "" {
			if req.Until, err = sandbox.ParseFuture(until, d.Now()); err != nil {
				return fault.Usage("--until: %w", err).WithHint("a duration is --ttl")
			}
		}
		if (req.TTL > 0) == !req.Until.IsZero() {
			return fault.Usage("one of --ttl and --until is needed").WithHint("--ttl 1h ends it an hour from now, --until 18:00 at a time")
		}
		req.Typed, req.Line = args, d.typedLine(p)
		if req.Words, err = d.readRefWords(ctx, args); err != nil {
			return err
		}
		if dry {
			return planExtend(ctx, d, p, req)
		}
		return extend(ctx, d, p, req)
	})
}

func extend(ctx context.Context, d *Deps, p *output.Printer, req end.ExtendRequest) error {
	list, err := output.NewList(p, output.ListSpec[end.ExtendResult]{Schema: extendSchema, Columns: views.ExtendColumns(), Line: views.ExtendLine})
	if err != nil {
		return err
	}
	req.Unattended = !d.isAttended()
	act, err := end.PlanExtend(ctx, d.Env, req)
	if err != nil {
		return err
	}
	list.Set(views.TerminateKeys{RunID: act.RunID})
	done := d.doAct(ctx, act, d.newObserver(p, func(item any) {
		switch i := item.(type) {
		case ops.RunStarted:
		case error:
			list.Fail(i)
		case end.ExtendResult:
			list.AddResult(i, i.Err)
		}
	}))
	if done.Refused != nil {
		list.Fail(done.Refused)
	}
	list.Set(views.TerminateKeys{Counts: new(fleet.Count(done.Endings))})
	if done.Refused == nil && done.Err != nil {
		return list.CloseAs(done.Err)
	}
	return list.Close()
}

// planExtend prints what would be done.
func planExtend(ctx context.Context, d *Deps, p *output.Printer, req end.ExtendRequest) error {
	if err := p.Format.Refuse("extend --dry-run", output.RowFormats()...); err != nil {
		return err
	}
	req.Shown = true
	act, err := end.PlanExtend(ctx, d.Env, req)
	if err != nil {
		return err
	}
	return p.ShowAs(output.Document{
		Schema: extendSchema,
		Fields: output.FieldsOf(views.TerminateKeys{Plan: views.PlanOf(act.RunID, act.Targets, act.Kept, act.Guards)}),
		Human:  func(s *output.Sheet) { views.ExtendPlanPage(s, act) },
	}, act.Verdict, act.Errors...)
}
