package guest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Command runs one command inside a sandbox and waits for its end. An exit without a code was not seen.
type Command func(ctx context.Context, cmd providers.Command) (sandbox.Exit, error)

// Shell is a Shell whose scripts are commands with this environment. What does not respond within the limit
// says nothing of the API.
func (run Command) Shell(env []string, limit time.Duration) Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fault.New(fault.KindUnavailable, "it did not respond within %s", limit).Inside())
		defer cancel()
		var out bytes.Buffer
		code, err := run.script(ctx, text, env, &out)
		return out.Bytes(), code, err
	}
}

// Stream is a Stream whose scripts are commands. Each may run for minutes.
func (run Command) Stream() Stream {
	return func(ctx context.Context, text string, out io.Writer) (int, error) {
		return run.script(ctx, text, nil, out)
	}
}

func (run Command) script(ctx context.Context, text string, env []string, out io.Writer) (code int, err error) {
	exit, err := run(ctx, providers.Command{Args: Argv(ScriptName, text), Env: env, Stdout: out, Stderr: io.Discard})
	if exit.Code == nil {
		return -1, err
	}
	return *exit.Code, err
}

// KillMarked ends a user's command and all processes with its mark in their environment. It is a cleanup: see
// wirekit.CleanupContext. Without a mark there is nothing to end.
func KillMarked(ctx context.Context, sh Shell, mark string) error {
	if mark == "" {
		return nil
	}
	ctx, cancel := wirekit.CleanupContext(ctx)
	defer cancel()
	_, code, err := sh(ctx, KillMarkedScript(MarkVariable+"="+mark))
	if err == nil && code != 0 {
		err = fault.New(fault.KindUnavailable, "the script that kills it exits with %d", code)
	}
	return err
}

// LostExit is the exit of a command that was started and whose end was not seen, because of err. f says where that
// was found out, and whether the sandbox is gone; a script of sbx needs no look at what runs in it.
func LostExit(b *wirekit.Base, id string, f triage.ExitFacts, script bool, err error) (sandbox.Exit, error) {
	f.Provider, f.StreamLost, f.At = b.TypeName, true, b.Now()
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost stream")
	exit.Evidence = append(exit.Evidence, b.Evidence("stream", err.Error(), f.Source))
	switch {
	case f.Gone:
		return exit, fault.New(fault.KindGone, "it ended while the command ran")
	case script:
		return exit, fault.New(fault.KindUnavailable, "the connection was lost: %w", err).WithHint("try again")
	}
	return exit, fault.New(fault.KindUnavailable, "the connection was lost; the command may still run, its end is unknown: %w", err).
		WithHint("`sbx exec %s/%s -- ps` shows whether it runs", b.Profile, id)
}
