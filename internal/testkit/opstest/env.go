// Package opstest composes the environment of operations over given providers, for the
// tests of operations and of what stands on them. Fleet, configuration, journals and lock
// are the real ones; nothing is published, notified or shared with other hosts. A Site has
// providers in memory, and a Recorder observes. Assertions stay in the tests.
package opstest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/httpx"
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// Parts are what a test decides. The rest can be replaced in the Env.
type Parts struct {
	Process  process.Process
	Types    []providers.Type
	Config   func() (*config.Config, error)
	Members  func() []fleet.Member // the opened profiles
	Selected func() []string       // those that the operator has named; nil or empty = all
	Store    func() store.Store    // opens it; an operation closes what it has opened
	Runs     string                // the directory of the journals of bulk runs, with their lock beside it
	Endings  string                // the directory of the journals of all other endings
	Poll     fleet.Poll            // how often an end is looked for; zero = every millisecond
	Sample   time.Duration         // between the samples of a look; 0 = a millisecond
	Asking   func(string) func()   // fleet.Options.Asking
	Requests fleet.EndRequests     // fleet.Options.EndRequests
	History  fleet.History         // fleet.Options.History
	Names    fleet.NameCache       // fleet.Options.Names
}

// NewEnv composes the environment.
func NewEnv(p Parts) *ops.Env {
	if p.Selected == nil {
		p.Selected = func() []string { return nil }
	}
	env := &ops.Env{
		Process: p.Process, Version: ops.Version{Version: "1.2.3", Commit: "abc", Go: "go1.26", OS: "linux", Arch: "amd64"}, Types: p.Types,
		Config:   sync.OnceValues(p.Config), // as in the program: once in a process
		Store:    func(bool) (store.Store, error) { return p.Store(), nil },
		Journals: func() (journal.Disk, error) { return journal.Dir(p.Runs), nil },
		Endings:  func() (journal.Disk, error) { return journal.Dir(p.Endings), nil },
		Shared:   func() (store.Store, error) { return nil, nil }, //nolint:nilnil // without one
		Lock:     p.lock,

		RunbookRuns:    func() (journal.Disk, error) { return journal.Dir(p.runbookRuns()), nil },
		LockRunbookRun: p.lockRunbookRun,

		Incidents: func() (incident.Folder, error) {
			return incident.Folder(filepath.Join(filepath.Dir(p.Runs), "incidents")), nil
		},
		Notifier:   func(string) (*notify.Notifier, error) { return &notify.Notifier{}, nil },
		Control:    func() (ops.ControlPlane, error) { return nil, nil }, //nolint:nilnil // without one
		Tasks:      p.tasks,
		Alive:      func(task.Owner) sandbox.Verdict { return sandbox.Unknown },
		PushTarget: func(_ context.Context, text string) (publish.Target, error) { return publish.ParseTarget(text) },
	}
	env.KeepEvent = func(e history.Event) {
		if st, err := env.Store(true); err == nil {
			r := history.NewRecorder(env.Now)
			r.AddEvent(e)
			_ = errors.Join(r.Flush(context.Background(), st), st.Close()) //nolint:forbidigo // kept also after an interrupt; a test that reads none needs none
		}
	}
	env.Fleet = func(context.Context) (*fleet.Fleet, error) { return p.fleet(env).Narrow(p.Selected()) }
	env.Only = func(_ context.Context, names ...string) (*fleet.Fleet, error) { return p.fleet(env).Narrow(names) }
	return env
}

// Notifying opens real notification services for Env.Notifier, such as a listener on loopback.
func Notifying(t notify.Targets) func(string) (*notify.Notifier, error) {
	return func(string) (*notify.Notifier, error) { return notify.New(httpx.Net{}, t) }
}

// Hanging opens services to which no connection is ever made, until the request is given up.
func Hanging(t notify.Targets) func(string) (*notify.Notifier, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return func(string) (*notify.Notifier, error) { return notify.New(httpx.Net{Dial: dial}, t) }
}

// fleet opens the members.
func (p Parts) fleet(env *ops.Env) *fleet.Fleet {
	poll := p.Poll
	if poll == (fleet.Poll{}) {
		poll = fleet.Poll{Min: time.Millisecond, Max: time.Millisecond}
	}
	return fleet.New(p.Members(), fleet.Options{
		EndRequests: p.Requests, History: p.History, Names: p.Names, Acknowledged: func(ctx context.Context, ref sandbox.Ref) bool { return recall.Acknowledged(ctx, env, ref) },
		Now: p.Process.Now, Sample: cmp.Or(p.Sample, time.Millisecond), Asking: p.Asking, Poll: poll,
	})
}

func (p Parts) lock(ctx context.Context, h lock.Holder, wait time.Duration) (context.Context, func() error, error) {
	l, err := lock.Take(ctx, filepath.Join(filepath.Dir(p.Runs), "cleanup.lock"), h, wait)
	if err != nil {
		return nil, nil, err
	}
	return ctx, l.Release, nil
}

// runbookRuns is the folder of the runs of runbooks, beside that of bulk runs.
func (p Parts) runbookRuns() string { return filepath.Join(filepath.Dir(p.Runs), "runbook-runs") }

func (p Parts) lockRunbookRun(ctx context.Context, h lock.Holder) (func() error, error) {
	l, err := lock.Take(ctx, filepath.Join(p.runbookRuns(), h.Run+".lock"), h, 0)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

func (p Parts) tasks(_ context.Context, parts ops.TaskParts) (task.Options, error) {
	return task.Options{
		Ledger: task.Ledger{Store: parts.Store, LimitMB: parts.BudgetMB}, Sandboxes: parts.Fleet,
		Owner: task.Owner{Host: p.Process.Host, PID: p.Process.PID, Who: "test"}, Protected: parts.Protected,
	}, nil
}
