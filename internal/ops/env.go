package ops

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/notify"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// Env is what operations need from outside. The costly parts are functions: nothing is
// read or opened before an operation asks for it.
type Env struct {
	Process  process.Process // its clock, host, user and signals; operations print nothing
	Version  Version
	ReadOnly bool // operations that end, start or change something are refused
	Types    []providers.Type

	Config func() (*config.Config, error)
	Input  func() config.Input // what the configuration is read from
	// Program is this binary's own path, for cron lines and for programs that a drill stages.
	Program func() (string, error)
	// Fleet opens the selected providers and has leftovers swept.
	Fleet func(ctx context.Context) (*fleet.Fleet, error)
	// Only opens the profiles of these names, without any all, whatever is selected.
	Only func(ctx context.Context, names ...string) (*fleet.Fleet, error)
	// Store is what survives the process. One that is only read is not made: then
	// a missing one is empty. It opens at its first use.
	Store func(write bool) (store.Store, error)
	// Journals is where the runs of bulk endings are written down.
	Journals func() (journal.Disk, error)
	// Endings is where endings that are no bulk run are written down.
	Endings func() (journal.Disk, error)
	// RunbookRuns is where runs of runbooks are written down.
	RunbookRuns func() (journal.Disk, error)
	// LockRunbookRun keeps a second process from working at the run of a runbook that the holder
	// names.
	LockRunbookRun func(ctx context.Context, h lock.Holder) (release func() error, err error)
	// KeepEvent keeps what a verb has concluded or done, for reports; nil = nothing is kept. It is stored
	// when the verb ends, and once a minute.
	KeepEvent func(history.Event)
	// Incidents is where earlier versions wrote incidents down; nil = nowhere.
	Incidents func() (incident.Folder, error)
	// Shared opens the store that hosts share; nil = they share none.
	Shared func() (store.Store, error)
	// Lock keeps a second bulk ending from acting, on this machine and, with a
	// shared store, on others. The context that it gives ends when the lock is lost.
	Lock func(ctx context.Context, h lock.Holder, wait time.Duration) (held context.Context, release func() error, err error)
	// Notifier opens the notification services; ping replaces the configured ping address
	// unless it is "". The error is a warning: the notifier beside it serves the services that
	// could be opened.
	Notifier func(ping string) (*notify.Notifier, error)
	// Control opens the control plane of `run.callback_url`; nil without one.
	Control func() (ControlPlane, error)
	// Tasks joins what launching and stopping tasks need.
	Tasks func(ctx context.Context, parts TaskParts) (task.Options, error)
	// Alive says whether the owner of a task lives; unknown for an owner on another host.
	Alive func(o task.Owner) sandbox.Verdict
	// PushTarget reads REMOTE=BRANCH; the name of a remote of the repository here
	// becomes its address.
	PushTarget func(ctx context.Context, text string) (publish.Target, error)
	// Background starts this binary again as the runner of a task, which outlives this
	// process. The order goes through a pipe: it holds values that are never kept.
	Background func(ctx context.Context, id string, order []byte) (task.Owner, error)

	once sync.Once
	book triage.ThresholdBook

	outbox outbox
}

// Version is what `sbx version` shows.
type Version struct {
	Version string
	Commit  string
	Go      string
	OS      string
	Arch    string
}

// Now is the wall clock of this process.
func (e *Env) Now() time.Time { return e.Process.Now() }

// MayChange refuses what would end, start or change anything where this process may only look.
func (e *Env) MayChange() error {
	if e.ReadOnly {
		return fault.New(fault.KindRefused, "--read-only: nothing is changed").WithHint("start it again without --read-only")
	}
	return nil
}

// Thresholds are the thresholds of one sandbox: what its profile says of its agent type.
func (e *Env) Thresholds(s sandbox.Sandbox) triage.Thresholds {
	e.once.Do(func() { e.book = e.thresholdBook() })
	return e.book.For(s)
}

// thresholdBook is the thresholds of every profile and agent type; the defaults where the configuration
// cannot be read.
func (e *Env) thresholdBook() triage.ThresholdBook {
	c, err := e.Config()
	if err != nil {
		return triage.ThresholdBook{Default: triage.DefaultThresholds()}
	}
	return c.Thresholds
}

// Path resolves a file name relative to the working directory. "" stays "".
func (e *Env) Path(name string) string {
	if name == "" || filepath.IsAbs(name) || e.Process.Workdir == "" {
		return name
	}
	return filepath.Join(e.Process.Workdir, name)
}

// ConfiguredNames are the names of all configured profiles.
func (e *Env) ConfiguredNames() []string {
	c, err := e.Config()
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range c.Profiles {
		names = append(names, p.Name)
	}
	return names
}

// Reporter takes what an operation says while it works.
type Reporter interface {
	// Note reports progress, Warn a problem beside the operation.
	Note(text string)
	Warn(text string)
	// Redact takes secrets out of a text that is kept.
	Redact(text string) string
}

// Observer is what an operation reports to while it works. A command line, a dashboard and a
// test each have their own. An operation calls it from one goroutine at a time.
type Observer interface {
	Reporter
	// Progress begins to show how far something is that takes time.
	Progress(label string) Progress
	// Item takes one result as soon as it is known; each operation says of which types.
	Item(item any)
}

// Progress shows how far something is, until it is Done.
type Progress interface {
	Update(text string)
	Done()
}
