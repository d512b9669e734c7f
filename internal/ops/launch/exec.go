package launch

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// ExecRequest is a command that runs inside a sandbox.
type ExecRequest struct {
	Word    string
	Command providers.Command
	// Connect joins the command with its streams once the sandbox is found; the func that it
	// gives releases them.
	Connect func(*providers.Command) (release func(), err error)
}

// execCleanup is how long a command that was given up is being killed while somebody waits. Where that is not confirmed
// by then, the error says that it may still run.
const execCleanup = time.Second

// Exec runs a command inside a sandbox. A code of the command other than 0 is an error of
// type ProgramExit.
func Exec(ctx context.Context, env *ops.Env, req ExecRequest) error {
	if err := env.MayChange(); err != nil {
		return err
	}
	f, found, err := env.FindOne(ctx, req.Word)
	if err != nil {
		return err
	}
	c := req.Command
	release, err := req.Connect(&c)
	if err != nil {
		return err
	}
	defer release()
	exit, err := f.Exec(providers.WithCleanupLimit(ctx, env.Process.TimeScale.Limit(execCleanup)), found.Ref(), c)
	switch {
	case err != nil:
		return unclassifiedIsLauncher(err)
	case ctx.Err() != nil && exit.Signal != "":
		return ctx.Err() // killed because the time was over
	}
	return programExit(found.Ref(), exit)
}

// unclassifiedIsLauncher gives an error of unknown kind the exit code that `timeout` and
// `docker run` use for it.
func unclassifiedIsLauncher(err error) error {
	if fault.KindOf(err) != fault.KindUnknown {
		return err
	}
	return &fault.Error{Kind: fault.KindLauncher, Hint: fault.HintOf(err), Err: err}
}

// maxExit is the largest code that a process can return.
const maxExit = 255

// programExit passes the program's own exit code on. An exit code that was not seen, or that
// the operating system would change, is never reported as success.
func programExit(ref sandbox.Ref, e sandbox.Exit) error {
	switch {
	case e.Code == nil:
		return fault.New(fault.KindLauncher, "the command ended, but its exit code is unknown").At(ref.Provider, "exec "+ref.ID)
	case *e.Code < 0 || *e.Code > maxExit:
		return fault.New(fault.KindLauncher, "the command ended with %d, which is not an exit code", *e.Code).At(ref.Provider, "exec "+ref.ID)
	case *e.Code == 0:
		return nil
	}
	return ProgramExit{Code: *e.Code}
}
