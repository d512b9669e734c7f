package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/end"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

const keepSchema = "sbx.keep/v1"

func newKeep(d *Deps) *cobra.Command {
	var limit string
	var listed bool
	var req end.KeepRequest
	cmd := &cobra.Command{
		Use:     "keep REF...",
		GroupID: groupAct,
		Short:   "Keep sandboxes from being terminated",
		Long: "Keep sandboxes from being terminated, by the label sbx/keep: cleanup,\n" +
			"reconcile --fix and terminate skip them. A time limit of the provider still\n" +
			"ends them.\n\n" +
			"Without --for they are kept until --off. The label is read again before sbx says\n" +
			"that they are kept; exit 8 means that this read does not show it. Where labels\n" +
			"cannot be changed (exit 9), the configuration protects one: protect.ids.\n" +
			"`-` reads REFs from standard input. --list shows what is kept, and by what.",
		Example: "sbx keep local/k3v9x2mq7a --for 2h\n" +
			"sbx keep local/k3v9x2mq7a --off\n" +
			"sbx ls --state running -o name | sbx keep --for 1d -\n" +
			"sbx keep --list",
		Args: usageArgs(func(cmd *cobra.Command, args []string) error {
			if listed {
				return nil
			}
			return atLeastOneArg("REF")(cmd, args)
		}, "name a sandbox: sbx keep REF"),
		ValidArgsFunction: d.completeRefs(true, offerLiving),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&limit, "for", "", "keep them for `DURATION` from now; without it until --off")
	f.BoolVar(&req.Off, "off", false, "remove the label: they may be terminated again")
	f.BoolVar(&listed, "list", false, "list what bulk verbs would not end, and why")
	return d.completeVerb(cmd, document{schema: keepSchema, shape: output.ShapeList, columns: output.Names(views.KeepColumns())},
		func(ctx context.Context, p *output.Printer, args []string) (err error) {
			if listed {
				if len(args) > 0 || f.Changed("for") || f.Changed("off") {
					return fault.Usage("--list takes no REF, --for or --off").WithHint("it lists everything that is kept; `sbx inspect REF` shows one")
				}
				return listKept(ctx, d, p)
			}
			if f.Changed("for") {
				if req.For, err = sandbox.ParseDuration(limit); err != nil {
					return fault.Usage("--for: %w", err)
				}
				if req.Off {
					return fault.Usage("--for and --off exclude each other").WithHint("--off removes the label at once")
				}
			}
			req.Typed = args
			return keep(ctx, d, p, req)
		})
}

func keep(ctx context.Context, d *Deps, p *output.Printer, req end.KeepRequest) (err error) {
	if req.Words, err = d.readRefWords(ctx, req.Typed); err != nil {
		return err
	}
	list, err := output.NewList(p, output.ListSpec[end.KeepResult]{Schema: keepSchema, Columns: views.KeepColumns(), Line: views.KeepLine})
	if err != nil {
		return err
	}
	req.Unattended = !d.isAttended()
	act, err := end.PlanKeep(ctx, d.Env, req)
	if err != nil {
		return err
	}
	done := d.doAct(ctx, act, d.newObserver(p, func(item any) {
		switch i := item.(type) {
		case error:
			list.Fail(i)
		case end.KeepResult:
			list.AddResult(i, i.Err)
		}
	}))
	if done.Refused != nil {
		return done.Refused
	}
	return list.Close()
}

// listKept prints what bulk verbs would not end.
func listKept(ctx context.Context, d *Deps, p *output.Printer) error {
	list, err := output.NewList(p, output.ListSpec[end.KeepResult]{Schema: keepSchema, Columns: views.KeepColumns(), Line: views.KeptLine})
	if err != nil {
		return err
	}
	kept, missing, err := end.Kept(ctx, d.Env)
	if err != nil {
		return err
	}
	for _, err := range missing {
		list.Fail(err)
	}
	for _, r := range kept {
		list.AddResult(r, nil)
	}
	return list.Close()
}
