package commands

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/task"
	"sbx/internal/views"
)

const (
	tasksSchema     = "sbx.tasks/v1"
	tasksShowSchema = "sbx.tasks.show/v1"
)

type tasksOptions struct {
	states []string
	since  string
	limit  int
}

func newTasks(d *Deps) *cobra.Command {
	var o tasksOptions
	cmd := &cobra.Command{
		Use:     "tasks",
		GroupID: groupLook,
		Short:   "List tasks and their state",
		Long: "List the tasks that `sbx run` launched, newest first: state, what\n" +
			"they wait for, and how the last attempt ended. `sbx tasks show TASK` shows one in full.",
		Example: "sbx tasks\nsbx tasks --state running --state pending\nsbx tasks --since 24h -o json",
		Args:    d.noWords("`sbx tasks show TASK` shows one"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&o.states, "state", nil, "only tasks in this `STATE` (repeatable)")
	f.StringVar(&o.since, "since", "", "only those since `TIME`: 24h (ago), yesterday, 2026-11-20")
	f.IntVar(&o.limit, "limit", 0, "the newest `N` alone")
	completeFlag(cmd, "state", taskStates)
	d.completeVerb(cmd, document{schema: tasksSchema, shape: output.ShapeList, columns: output.Names(views.TaskColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return listTasks(ctx, d, p, o) })
	cmd.AddCommand(newTasksShow(d))
	return cmd
}

func taskStates() []string { return wordsOf(task.States()) }

func listTasks(ctx context.Context, d *Deps, p *output.Printer, o tasksOptions) error {
	req, err := o.readRequest(d.Now())
	if err != nil {
		return err
	}
	req.Profiles = d.Globals.Providers
	r, err := launch.ListTasks(ctx, d.Env, req)
	if err != nil {
		return err
	}
	list, err := output.NewList(p, output.ListSpec[views.TaskRow]{
		Schema: tasksSchema, Columns: views.TaskColumns(), Empty: "no tasks; `sbx run -- COMMAND` launches one",
	})
	if err != nil {
		return err
	}
	for _, t := range r.Tasks {
		if err := list.Add(views.TaskRowOf(t, d.Now())); err != nil {
			return list.CloseAs(err)
		}
	}
	if r.Truncated {
		list.Truncated()
	}
	return list.Close()
}

func (o tasksOptions) readRequest(now time.Time) (req launch.TasksRequest, err error) {
	for _, word := range o.states {
		if !slices.Contains(taskStates(), word) {
			return req, fault.Usage("--state: %q is not a state of a task", word).WithHint("%s", fault.Meant(word, taskStates()))
		}
		req.States = append(req.States, task.State(word))
	}
	if req.Limit = o.limit; o.limit < 0 {
		return req, fault.Usage("--limit: %d is not a number of tasks", o.limit)
	}
	req.Since, err = optionalAge("--since", o.since, now)
	return req, err
}

func newTasksShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "show TASK",
		SuggestFor: []string{"get", "inspect", "describe", "info"},
		Short:      "Show one task: attempts, evidence, timeline, next command",
		Long: "Show one task in full: its state, every attempt with the evidence of its end,\n" +
			"what was published, which sandboxes are verified gone, and the timeline.\n" +
			"TASK is its id, a unique prefix of 4 characters or more, or its key.",
		Example:           "sbx tasks show t-k3v9x2mq7abc\nsbx tasks show t-k3v9 -o json",
		Args:              usageArgs(oneArg("TASK"), "name one task: sbx tasks show TASK"),
		ValidArgsFunction: d.completeTasks(false, offerAnyTask),
	}
	return d.completeVerb(cmd, document{schema: tasksShowSchema, shape: output.ShapeItem, columns: output.Names(views.TaskItemColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return showTask(ctx, d, p, args[0]) })
}

// getTask finds a task of the profiles that --provider names.
func (d *Deps) getTask(ctx context.Context, word string) (ops.TaskState, error) {
	t, err := ops.GetTask(ctx, d.Env, word)
	if err == nil {
		err = ops.TaskWithin(t.Task, d.Globals.Providers)
	}
	return t, err
}

func showTask(ctx context.Context, d *Deps, p *output.Printer, word string) error {
	t, err := d.getTask(ctx, word)
	if err != nil {
		return err
	}
	return output.ShowItem(p, output.ItemSpec[views.TaskRow]{
		Schema: tasksShowSchema, Columns: views.TaskItemColumns(), Human: func(s *output.Sheet, r views.TaskRow) { r.Page(s) },
	}, views.TaskRowOf(t, d.Now()))
}
