package commands

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/output"
	"sbx/internal/task"
	"sbx/internal/views"
)

const reportSchema = "sbx.report/v1"

func newReport(d *Deps) *cobra.Command {
	var o tasksOptions
	cmd := &cobra.Command{
		Use:     "report",
		GroupID: groupLook,
		Short:   "Measure the tasks beside their targets",
		Long: "Measure the tasks that `sbx run` has launched: how many succeed, how long a stop\n" +
			"takes, how often a limit ends one, each beside its target and with the number of\n" +
			"tasks or attempts that it was taken from. VERDICT is true where the target is met,\n" +
			"false where it is missed, unknown without a sample or a target. A report is no\n" +
			"check: its exit code is 0 whatever it finds.",
		Example: "sbx report\nsbx report --since 7d\nsbx report --since 24h -o json",
		Args:    usageArgs(noArgs, "`sbx tasks show TASK` shows one task"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.since, "since", "", "only tasks of the last `DURATION`: 7d")
	return d.verb(cmd, document{schema: reportSchema, shape: output.ShapeList, columns: output.Names(views.ReportColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return report(ctx, d, p, o) })
}

func report(ctx context.Context, d *Deps, p *output.Printer, o tasksOptions) error {
	query, err := o.query(d.Now())
	if err != nil {
		return err
	}
	tasks, err := d.ListTasks(ctx, query)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(t task.Task) bool { return t.Spec.Warm }) // nobody asked for their work
	r := newReportPage(tasks, d.Now())
	list, err := output.NewList(p, output.ListSpec[task.Figure]{Schema: reportSchema, Columns: views.ReportColumns(), Human: r.Page})
	if err != nil {
		return err
	}
	list.Set("tasks", len(tasks))
	list.Set("causes", r.CauseObjects())
	list.Set("look_at", r.LookObjects())
	for _, f := range task.Figures(tasks, r.Now) {
		if err := list.Add(f); err != nil {
			return list.CloseAs(err)
		}
	}
	return list.Close()
}

// newReportPage measures by the store's clock, which the tasks' times are from.
func newReportPage(tasks []task.Task, now time.Time) views.ReportPage {
	if len(tasks) > 0 {
		now = tasks[0].ReadAt
	}
	return views.ReportPage{Tasks: tasks, Now: now}
}
