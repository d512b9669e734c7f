// Package cli is the composition root: it turns the process value into
// configuration, providers, a fleet and the command tree, runs one verb, and
// turns its error into the exit code. It is the only room that knows everyone.
//
// No verb's own work enters here.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"sbx/internal/commands"
	"sbx/internal/drill"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/providers/daytona"
	"sbx/internal/providers/docker"
	"sbx/internal/providers/e2b"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/providers/local"
	"sbx/internal/providers/monotask"
	"sbx/internal/providers/omoios"
	"sbx/internal/providers/vercel"
)

// Main runs one process of sbx and returns its exit status.
func Main(p process.Process) int {
	if status, done := local.Reexec(p.Args); done {
		return status
	}
	if status, done := drill.Program(p.Args, p.Stdout); done {
		return status
	}
	return Run(p, Types())
}

// Types lists the kinds of providers that this binary has.
func Types() []providers.Type {
	return []providers.Type{
		local.Type(),
		e2b.Type(), e2b.NovitaType(),
		daytona.Type(), vercel.Type(), monotask.Type(), docker.Type(), kubernetes.Type(),
		omoios.Type(),
	}
}

// Run runs one verb over the given kinds of providers.
func Run(p process.Process, types []providers.Type) int {
	p = completeProcess(p)
	ctx, signals := watchSignals(&p)
	defer signals.stop()
	a := newApp(ctx, p, types)
	signals.acknowledgeWith(func(text string) { a.anyPrinter().Warn(text) }) // also with --quiet: the next one counts only after it
	deps := a.commandDeps()
	root := commands.NewRoot(deps)
	root.SetArgs(p.Args[min(1, len(p.Args)):])
	root.SetIn(p.Stdin)
	pages := &pageWriter{to: p.Stdout}
	root.SetOut(pages)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.began.Load() {
		err = asUsageError(err)
	}
	if err == nil {
		err = pages.failure
	}
	if errors.Is(err, output.ErrClosed) {
		err = nil // the reader of stdout has what it wanted
	}
	a.reportError(err)
	if a.history != nil {
		a.history.Flush()
	}
	code := exitCode(err, signals)
	a.sendNotifications(ctx, deps.Env)
	if a.history != nil {
		a.history.Flush() // with what was sent
	}
	if s := signals.first.Load(); s == os.Interrupt && code == signals.exitCode() && p.EndBy != nil {
		p.EndBy(os.Interrupt)
	}
	return code
}

// pageWriter writes what the command tree prints itself: help, versions, scripts of completion. It keeps
// the first failure, which cobra drops.
type pageWriter struct {
	to      io.Writer
	failure error
}

func (w *pageWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil && w.failure == nil {
		w.failure = output.WriteError(err)
	}
	return n, err
}

// exitCode is the exit code of an error: of the signal that ended the verb, if one did.
func exitCode(err error, signals *signalWatch) int {
	own, ok := errors.AsType[launch.ProgramExit](err)
	if code := signals.exitCode(); code != 0 && err != nil && !own.Plugin {
		return code
	}
	if ok {
		return own.Code
	}
	return fault.ExitCode(err)
}

// sendNotifications sends after the answer. Whatever comes of it, the exit code is that of the
// answer. --timeout bounds it, too.
func (a *app) sendNotifications(ctx context.Context, env *ops.Env) {
	if limit, limited := a.ctx.Deadline(); limited {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, limit)
		defer stop()
	}
	if p, err := a.printer(); err == nil {
		defer p.Progress("notifying people").Done()
	}
	env.SendNotifications(ctx)
}

// asUsageError makes an error from before a verb starts one of usage: it is cobra's, about the words that were typed.
func asUsageError(err error) error {
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	return fault.Usage("%w", err)
}

// buildVersion reads what the linker recorded: the module's version and the commit
// of the checkout, so that no build flag has to name them.
func buildVersion() ops.Version {
	v := ops.Version{Version: "devel", Commit: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		v.Commit += "-dirty"
	}
	return v
}
