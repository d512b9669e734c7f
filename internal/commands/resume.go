package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newResume(d *Deps) *cobra.Command {
	o := launchOptions{}
	cmd := &cobra.Command{
		Use:     "resume TASK [flags] -- COMMAND...",
		GroupID: groupAct,
		Short:   "Run another command in a task's kept sandbox",
		Long: "Run a command as a new task in the sandbox that `sbx run --keep-alive` has kept.\n\n" +
			"The sandbox is probed first. If it answers it is used, and RESUME_SESSION_ID names\n" +
			"the agent's session; if two sources say it is gone it is replaced by a new one without\n" +
			"a session, and nothing is reinstalled in an old one; between two states it is\n" +
			"waited for. Exit codes are those of `sbx run`.",
		Example:           "sbx resume t-k3v9x2mq7abc -- sh -c 'echo go on'\nsbx resume t-k3v9 --keep-alive -- true",
		Args:              d.afterDash("TASK", "sbx resume TASK -- COMMAND"),
		ValidArgsFunction: d.completeTasks(false, offerKept),
	}
	o.addFlags(cmd.Flags())
	for _, flag := range notOfResume() {
		_ = cmd.Flags().MarkHidden(flag)
	}
	o.registerCompletions(d, cmd)
	return d.completeVerb(cmd, document{schema: "sbx.resume/v1", shape: output.ShapeItem, columns: output.Names(views.TaskItemColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return runResume(ctx, d, p, args[0], args[1:], &o)
		})
}

// notOfResume are the flags of run that mean nothing where the sandbox is there
// already, or is made like the first.
func notOfResume() []string {
	return []string{
		"file", "parallel", "again", "retry-failed", "compare", "detach", "key", "memory-budget", "branch",
		"template", "snapshot", "image", "memory", "cpu", "disk", "pids", "isolate", "require-hard-limit", "name",
	}
}

func runResume(ctx context.Context, d *Deps, p *output.Printer, word string, command []string, o *launchOptions) error {
	for _, flag := range notOfResume() {
		if o.flags.Changed(flag) {
			return fault.Usage("resume: --%s cannot be set", flag).WithHint("the sandbox is the task's kept one, or a new one with the same settings")
		}
	}
	d.Globals.Settings = o.configOverrides()
	req, err := o.readRequest(ctx, d, p, command)
	if err != nil {
		return err
	}
	from, err := d.getTask(ctx, word)
	if err != nil {
		return err
	}
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	if err := log.openFile(); err != nil {
		return err
	}
	req.Resumed = &from.Task
	return launchOne(ctx, d, p, o, req, "sbx.resume/v1")
}
