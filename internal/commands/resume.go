package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/task"
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
	o.add(cmd.Flags())
	for _, flag := range notOfResume() {
		_ = cmd.Flags().MarkHidden(flag)
	}
	o.complete(d, cmd)
	return d.verb(cmd, document{schema: "sbx.resume/v1", shape: output.ShapeItem, columns: output.Names(views.TaskItem())},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return resume(ctx, d, p, args[0], args[1:], &o)
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

func resume(ctx context.Context, d *Deps, p *output.Printer, word string, command []string, o *launchOptions) error {
	for _, flag := range notOfResume() {
		if o.flags.Changed(flag) {
			return fault.Usage("resume: --%s has no meaning here", flag).WithHint("the sandbox is the one that the task has kept, or one made like it")
		}
	}
	d.Globals.Settings = o.settings()
	l, err := newLaunch(ctx, d, p, o, command)
	if err != nil {
		return err
	}
	var from task.Task
	err = d.ReadTasks(func(ledger task.Ledger) (err error) {
		from, err = ops.FindTask(ctx, ledger, word)
		return err
	})
	if err != nil {
		return err
	}
	if err := l.openJoblog(); err != nil {
		return err
	}
	if from.Kept != nil {
		l.kept = from.Kept.Ref
	}
	spec, err := l.spec(ctx)
	if err != nil {
		return err
	}
	if err := inherit(&spec, from); err != nil {
		return err
	}
	l.schema = "sbx.resume/v1"
	return l.with(ctx, spec, func(ctx context.Context, options task.Options) error {
		if !options.Reaches(from.Kept.Ref, from.Kept.Host) {
			return fault.New(fault.KindRefused, "%s runs on the host %s", from.Kept.Ref, from.Kept.Host).WithHint("resume it there")
		}
		return l.one(ctx, options, spec, from.ID)
	})
}

// inherit makes a spec go on where another task has ended.
func inherit(s *task.Spec, from task.Task) error {
	switch {
	case !from.State.Over():
		return fault.New(fault.KindRefused, "task %s is still %s", from.ID, from.State).WithHint("`sbx tasks show %s` says how it goes on; `sbx stop %s` stops it", from.ID, from.ID)
	case from.Kept == nil:
		return fault.New(fault.KindGone, "task %s has kept no sandbox", from.ID).WithHint("launch with `sbx run --keep-alive`; to begin anew use `sbx run`")
	}
	old := from.Spec
	s.Provider, s.Sandbox = from.Kept.Ref.Provider, from.Kept.Ref
	s.Template, s.Snapshot, s.Image, s.MemoryBytes, s.CPU = old.Template, old.Snapshot, old.Image, old.MemoryBytes, old.CPU
	s.DiskBytes, s.PIDs, s.HardLimit, s.Isolate = old.DiskBytes, old.PIDs, old.HardLimit, old.Isolate
	if s.Workdir == "" {
		s.Workdir = old.Workdir
	}
	if s.Session == "" {
		s.Session = old.Session
	}
	if a := from.Last(); a != nil {
		s.SessionID = a.Session
	}
	return nil
}
