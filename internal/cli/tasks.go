package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/providers/local"
	"sbx/internal/providers/local/plain"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/task/publisher"
)

// taskOptions joins what launching and stopping need.
func (a *app) taskOptions(_ context.Context, parts ops.TaskParts) (task.Options, error) {
	c, err := a.config()
	if err != nil {
		return task.Options{}, err
	}
	facts := func(profile string) providers.Facts {
		p, _ := c.Find(profile) // of one that is not configured any more nothing is known
		return p.Facts
	}
	dir, err := c.State()
	if err != nil {
		return task.Options{}, err
	}
	return task.Options{
		Ledger:    task.Ledger{Store: task.FairStore(parts.Store), LimitMB: parts.BudgetMB},
		Sandboxes: parts.Fleet,
		Publisher: publisher.New(publisher.Options{
			Git: a.newGit(), Dir: filepath.Join(dir, "tasks"), Environ: withoutSecrets(a.process.Environ, a.types, c.Secrets()), Workdir: a.process.Workdir,
			Stdout: a.process.Stderr, Stderr: a.process.Stderr, Now: a.process.Now, Secret: parts.Secret, Notice: parts.Notice,
		}),
		Breaker: newBreaker(parts.Store, a.thisOwner().Who, parts.Notice), KeepList: &task.KeepList{Store: parts.Store}, Memory: room{parts.Fleet},
		Owner: a.thisOwner(), Alive: a.ownerAlive,
		CallbackURL:    callbackURL(c),
		HostBound:      func(profile string) bool { return facts(profile).HostBound },
		ReadsProveEnds: parts.Fleet.ReadsProveEnds,
		DeleteOnEnd:    func(profile string) bool { return facts(profile).DeletesForTask() },
		SettleTime:     func(profile string) time.Duration { return facts(profile).SettleTime() },
		Jitter:         rand.Float64,
		CrashPoint:     a.process.At,
		Protected:      parts.Protected,
	}, nil
}

// callbackURL is the address of the control plane that agents are given. A mistake in the
// settings of launching is reported by launching verbs and does not keep a stop from working.
func callbackURL(c *config.Config) string {
	run, err := c.Run()
	if err != nil {
		return ""
	}
	return run.CallbackURL
}

// withoutSecrets is the operator's environment for a publish command of his own, which
// needs no provider: without the variables of their credentials, and without what a
// profile has as its secret under another name.
func withoutSecrets(environ []string, types []providers.Type, secrets []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(word string) bool {
		name, value, _ := strings.Cut(word, "=")
		for _, t := range types {
			if slices.ContainsFunc(t.Options, func(o providers.Option) bool { return o.Secret && o.Env == name }) {
				return true
			}
		}
		return value != "" && slices.Contains(secrets, value)
	})
}

func (a *app) newGit() *publish.Git {
	return &publish.Git{Environ: a.process.Environ, Now: a.process.Now}
}

func (a *app) pushTarget(ctx context.Context, text string) (publish.Target, error) {
	t, err := publish.ParseTarget(text)
	if err != nil {
		return t, err
	}
	return a.newGit().Resolve(ctx, t, a.process.Workdir)
}

// room is the memory that a fleet's machine has for one more sandbox, and the places
// that the configuration leaves.
type room struct{ *fleet.Fleet }

// CheckFree implements task.MemoryAdmission. Only a refusal counts: other errors are left to the create.
func (r room) CheckFree(ctx context.Context, profile string, mb int64) error {
	if err := r.Admit(ctx, profile, mb*sandbox.MiB); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	if err := r.Capacity(ctx, profile); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	return nil
}

func (a *app) thisOwner() task.Owner { return a.ownerOf(a.process.PID) }

// ownerOf is a process of this machine, that this one has started, as an owner.
func (a *app) ownerOf(pid int) task.Owner {
	return task.Owner{
		Host: a.process.Host, PID: pid, Birth: local.Birth(pid),
		Who: fmt.Sprintf("%s@%s (pid %d)", a.process.User(), a.process.Host, pid),
	}
}

// ownerAlive says whether a task's owner lives; unknown for an owner on another host.
func (a *app) ownerAlive(o task.Owner) sandbox.Verdict {
	if o.Host != a.process.Host {
		return sandbox.Unknown
	}
	return local.Lives(o.PID, o.Birth)
}

// startBackgroundRunner starts this binary again as the runner of a task, and says as which owner.
// What it says goes to a file of the state directory.
func (a *app) startBackgroundRunner(_ context.Context, id string, order []byte) (task.Owner, error) {
	self, err := stableProgramPath()
	if err != nil {
		return task.Owner{}, err
	}
	dir, err := a.stateFile("tasks")
	if err != nil {
		return task.Owner{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return task.Owner{}, err
	}
	log, err := plain.Open(filepath.Join(dir, id+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return task.Owner{}, err
	}
	defer log.Close() // the runner has its own
	pid, err := a.process.Background(self, append(a.inheritedFlags(), ops.RunnerVerb), string(order), log)
	return a.ownerOf(pid), err
}

// stableProgramPath is a path to this binary that works after the file was replaced.
func stableProgramPath() (string, error) {
	if _, err := os.Stat("/proc/self/exe"); err == nil {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// inheritedFlags are the flags under which the runner finds the same configuration.
func (a *app) inheritedFlags() []string {
	var args []string
	if a.globals.Config != "" {
		args = append(args, "--config", a.globals.Config)
	}
	for _, p := range a.globals.Providers {
		args = append(args, "--provider", p)
	}
	return args
}

// breakerKind is under what the states of shared breakers are kept.
const breakerKind = "breaker"

// breaker is task.Breaker: which exits count against a place.
type breaker struct {
	shared *policy.Shared
	who    string
}

func newBreaker(docs store.DocStore, who string, notice func(string)) breaker {
	return breaker{policy.NewShared(breakers{docs}, policy.SharedOptions{Notice: notice}), who}
}

// Allow is task.Breaker's.
func (b breaker) Allow(ctx context.Context, place string) (task.Permit, error) {
	permit, err := b.shared.Allow(ctx, place, b.who)
	if err != nil {
		return task.Permit{}, err
	}
	done := func(ctx context.Context, result policy.Result) { _ = permit.Done(ctx, result) } // the notice has reported a failing store
	return task.Permit{
		Started: func(ctx context.Context) {
			if permit.Probe() { // it has policy.SharedProbe, a program hours
				done(ctx, policy.ResultGood)
			}
		},
		Done: func(ctx context.Context, class sandbox.Class) { done(ctx, resultOf(class)) },
	}, nil
}

// resultOf says whether an exit counts against its place: failures of infrastructure do, and
// kills without explanation. The program's own failures, stops, limits and memory do not.
func resultOf(class sandbox.Class) policy.Result {
	switch class {
	case sandbox.ClassOK, sandbox.ClassAgentError:
		return policy.ResultGood
	case sandbox.ClassInfra, sandbox.ClassTransport, sandbox.ClassGone, sandbox.ClassLauncher, sandbox.ClassKilledUnknown:
		return policy.ResultFault
	case sandbox.ClassUsage, sandbox.ClassAuth, sandbox.ClassEnvironment, sandbox.ClassOOM, sandbox.ClassKilledByUs, sandbox.ClassCrash,
		sandbox.ClassTimeout, sandbox.ClassStopped, sandbox.ClassUnknown:
	}
	return policy.ResultNeutral
}

// breakers is policy.BreakerStore over the store.
type breakers struct{ docs store.DocStore }

// LoadBreaker is policy.BreakerStore's.
func (b breakers) LoadBreaker(ctx context.Context, key string) (policy.BreakerState, error) {
	d, err := b.docs.Doc(ctx, breakerKind, key)
	return policy.BreakerState{Body: d.Body, Version: d.Version, Now: d.ReadAt}, err
}

// SwapBreaker is policy.BreakerStore's.
func (b breakers) SwapBreaker(ctx context.Context, key string, body []byte, version int64) (bool, error) {
	_, err := b.docs.SwapDoc(ctx, store.Doc{Kind: breakerKind, Key: key, Version: version, Body: body})
	if errors.Is(err, store.ErrSwapped) {
		return false, nil
	}
	return err == nil, err
}
