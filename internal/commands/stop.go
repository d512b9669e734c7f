package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/views"
)

const stopSchema = "sbx.stop/v1"

func newStop(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "stop TASK...",
		GroupID: groupAct,
		Short:   "Cancel tasks: block publishing, then remove their sandboxes",
		Long: "Cancel tasks from any terminal, and from any host that shares the store.\n\n" +
			"It prints two lines per task: `will not publish` as soon as that is certain, and\n" +
			"`gone` when every sandbox of the task is verified gone. The kept sandbox of a\n" +
			"completed task is terminated, too. Exit 0 means both, 8 the first alone, 11 that it is\n" +
			"published already (it says what and where, and removes what is left), 5 that there\n" +
			"is no such task.\n" +
			"`-` reads TASKs from standard input.",
		Example:           "sbx stop t-k3v9x2mq7abc\nsbx tasks -o name | sbx stop -",
		Args:              usageArgs(atLeastOneArg("TASK"), "name a task: sbx stop TASK"),
		ValidArgsFunction: d.completeTasks(true, offerStoppable),
	}
	return d.completeVerb(cmd, document{schema: stopSchema, shape: output.ShapeList, columns: output.Names(views.StopColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return stopTasks(ctx, d, p, args) })
}

func stopTasks(ctx context.Context, d *Deps, p *output.Printer, args []string) error {
	words, err := d.readRefWords(ctx, args)
	if len(words) == 0 && err != nil && slices.Contains(args, "-") && fault.KindOf(err) == fault.KindUsage {
		return fault.Usage("no task was given on standard input").WithHint("`sbx tasks` lists them")
	}
	if err != nil {
		return err
	}
	list, err := output.NewList(p, output.ListSpec[launch.Stopped]{Schema: stopSchema, Columns: views.StopColumns(), Line: views.StopLine})
	if err != nil {
		return err
	}
	act, err := launch.PlanStop(ctx, d.Env, launch.StopRequest{Tasks: words, Profiles: d.Globals.Providers, Unattended: !d.isAttended()})
	if err != nil {
		return err
	}
	done := d.doAct(ctx, act, d.newObserver(p, func(item any) {
		if r, is := item.(launch.Stopped); is {
			list.AddResult(r, r.Err)
		} else {
			list.Say(views.ActItemLine(item))
		}
	}))
	if done.Refused != nil {
		return done.Refused
	}
	return list.Close()
}

func eachOnce(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
