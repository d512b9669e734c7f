package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newResume(d *Deps) *cobra.Command {
	o := launchOptions{}
	cmd := &cobra.Command{
		Use:     "resume TASK [flags] -- COMMAND...",
		GroupID: groupAct,
		Short:   "Go on in the sandbox that a task has kept",
		Long: "Run a command as a new task in the sandbox that `sbx run --keep-alive` has kept.\n\n" +
			"The sandbox is asked first. One that answers is used, and RESUME_SESSION_ID names\n" +
			"the agent's session to the command; one that is gone (410, 404) is replaced by a\n" +
			"new one without a session, and nothing is installed anew in an old one; one\n" +
			"between two states is waited for. Exit codes are those of `sbx run`.",
		Example:           "sbx resume t-k3v9x2mq7abc -- sh -c 'echo go on'\nsbx resume t-k3v9 --keep-alive -- true",
		Args:              afterDash(1, "sbx resume TASK -- COMMAND"),
		ValidArgsFunction: d.completeTasks,
	}
	o.addFlags(cmd.Flags())
	for _, flag := range notOfResume() {
		_ = cmd.Flags().MarkHidden(flag)
	}
	o.registerCompletions(d, cmd)
	return d.completeVerb(cmd, document{schema: "sbx.resume/v1", shape: output.ShapeItem, columns: output.Names(views.TaskItem())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return runResume(ctx, d, p, args[0], args[1:], &o)
		})
}

// notOfResume are the flags of run that mean nothing where the sandbox is there
// already, or is made like the first.
func notOfResume() []string {
	return []string{
		"file", "parallel", "warm", "again", "retry-failed", "compare", "detach", "key", "memory-budget",
		"template", "snapshot", "image", "memory", "cpu", "disk", "pids", "isolate", "require-hard-limit", "name",
	}
}

func runResume(ctx context.Context, d *Deps, p *output.Printer, word string, command []string, o *launchOptions) error {
	for _, flag := range notOfResume() {
		if o.flags.Changed(flag) {
			return fault.Usage("resume: --%s has no meaning here", flag).WithHint("the sandbox is the one that the task has kept, or one made like it")
		}
	}
	d.Globals.Settings = o.configOverrides()
	req, err := o.readRequest(ctx, d, p, command)
	if err != nil {
		return err
	}
	from, err := ops.GetTask(ctx, d.Env, word)
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
