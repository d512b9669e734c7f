package guest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Shell runs one text inside a sandbox and gives what it printed and its exit
// code. An error means that it could not be run or that its end was not seen.
type Shell func(ctx context.Context, text string) (printed []byte, code int, err error)

// ErrNoRun says that sbx has started no program of that tag in the sandbox.
var ErrNoRun = errors.New("sbx has started no program in it")

// Start launches a program that is there: fault.KindCommandNotFound,
// fault.KindNotExecutable and, without its workdir, fault.KindLauncher where it is
// not, and nothing was started. fault.KindUsage for a tag that is in use,
// fault.KindUnavailable where its start was not seen and it may run. Only one launch
// of a tag can be, so it is asked for again where the answer was lost.
func Start(ctx context.Context, sh Shell, p Program) error {
	attempts := 0
	counted := func(ctx context.Context, text string) ([]byte, int, error) {
		attempts++
		return sh(ctx, text)
	}
	printed, code, err := Repeat(ctx, counted, findProgram(p)+Launch(p))
	switch {
	case err != nil:
		return err
	case code == ExitTaken && attempts > 1:
		return nil // by the attempt whose answer was lost
	case code == ExitTaken:
		return fault.Usage("a program of this name has been started in it before")
	case code == ExitNoProgram:
		return fault.New(fault.KindCommandNotFound, "there is no program %q in it", p.Args[0])
	case code == ExitNotExecutable:
		return fault.New(fault.KindNotExecutable, "%q may not be run", p.Args[0])
	case code == ExitNoWorkdir:
		return fault.New(fault.KindLauncher, "there is no folder %q in it", p.Workdir)
	case code == ExitUnseen:
		return fault.New(fault.KindUnavailable, "the program was asked for, its start was not seen").WithHint("it may run: `sbx inspect` and `sbx logs` tell, once it has begun")
	case code != 0 || !bytes.HasPrefix(printed, []byte("started")):
		return fault.New(fault.KindLauncher, "the program could not be started: the shell inside exits %d", code)
	}
	return nil
}

// Exit is how a run ended, nil while it runs; ErrNoRun is inside the
// fault.KindNotFound of one that never was.
func Exit(ctx context.Context, sh Shell, tag string) (*sandbox.Exit, error) {
	return Look(ctx, sh, ReadExit(tag), func(printed []byte, code int) (*sandbox.Exit, error) {
		if code == ExitMissing {
			return nil, fault.New(fault.KindNotFound, "%w", ErrNoRun)
		}
		return ParseExit(printed)
	})
}

// Usage measures inside the sandbox.
func Usage(ctx context.Context, sh Shell, now time.Time) (sandbox.Usage, error) {
	return Look(ctx, sh, Measure(), func(printed []byte, _ int) (sandbox.Usage, error) { return ParseUsage(printed, now) })
}

// Others lists the runs that go on in a sandbox beside that of main: commands whose
// output reaches their client alone.
func Others(ctx context.Context, sh Shell, main string) ([]providers.Process, error) {
	runs, err := Look(ctx, sh, List(), func(printed []byte, _ int) ([]Run, error) { return ParseList(printed) })
	if err != nil {
		return nil, err
	}
	var found []providers.Process
	for _, r := range runs {
		if r.Tag != main && !r.Ended {
			found = append(found, providers.Process{Args: []string{"run", r.Tag}})
		}
	}
	return found, nil
}

// Wait pauses, or returns the end of ctx as a fault.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
	}
}

// Environment turns KEY=VALUE words into what APIs take.
func Environment(words []string) map[string]string {
	env := map[string]string{}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			env[key] = value
		}
	}
	return env
}
