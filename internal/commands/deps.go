// Package commands is the command line: one file a verb, each with its
// arguments, its flags and one call downstairs. What a verb does lives in the
// rooms below; what it prints is said as columns and decided in output.
//
// No HTTP, no provider type and no exit of the process enters this room, and a
// verb never asks which format it prints.
package commands

import (
	"context"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/notify"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/triage"
)

// Deps is what every verb is handed. The costly parts are functions, so that
// help and version touch neither configuration nor provider.
type Deps struct {
	Process process.Process
	Version Version
	Types   []providers.Type
	Globals *Globals

	Printer func() (*output.Printer, error)
	Input   func() config.Input // what the configuration is read from
	Config  func() (*config.Config, error)
	// Fleet opens the selected providers and has leftovers swept.
	Fleet func(ctx context.Context) (*fleet.Fleet, error)
	// Only opens the profiles of these names, without any all, whatever is selected.
	Only func(ctx context.Context, names ...string) (*fleet.Fleet, error)
	// Store is what survives the process. One that is only read is not made: then
	// a missing one is empty. It opens at its first use.
	Store func(write bool) (store.Store, error)
	// Size reads the size of the terminal and, after it, every change; the
	// func stops it. Zero sizes mean that there is no terminal.
	Size func() (providers.Size, <-chan providers.Size, func())
	// RawTerminal puts the terminal into raw mode; the func puts it back.
	RawTerminal func() (func(), error)
	// Journals is where the runs of bulk endings are written down.
	Journals func() (journal.Disk, error)
	// Endings is where endings that are no bulk run are written down.
	Endings func() (journal.Disk, error)
	// ShareRun tells other hosts of a run, and SharedRuns asks for theirs, the newest
	// first; without a shared store there are none.
	ShareRun   func(ctx context.Context, run store.Run) error
	SharedRuns func(ctx context.Context, limit int) ([]store.Run, error)
	// Lock keeps a second bulk ending from acting, on this machine and, with a
	// shared store, on others. The context that it gives ends when the lock is lost.
	Lock func(ctx context.Context, h lock.Holder, wait time.Duration) (held context.Context, release func() error, err error)
	// Program is this binary's own path, for programs that the drill stages.
	Program func() (string, error)
	// Notifier tells people how a run went, and pings this address where it is not
	// "" instead of the configured one. Beside an error it tells those that can be
	// told; the error is a warning.
	Notifier func(ping string) (*notify.Notifier, error)
	// Control tells the control plane of `run.callback_url` how tasks go; nil without one.
	Control func() (ControlPlane, error)
	// Tasks joins what launching and stopping tasks need.
	Tasks func(ctx context.Context, parts TaskParts) (task.Options, error)
	// Alive says whether the owner of a task lives; unknown where nobody here can tell.
	Alive func(o task.Owner) sandbox.Verdict
	// PushTarget reads REMOTE=BRANCH; the name of a remote of the repository here
	// becomes its address.
	PushTarget func(ctx context.Context, text string) (publish.Target, error)
	// Background starts this binary again as the runner of a task, which outlives this
	// process. The order goes through a pipe: it holds values that are never kept.
	Background func(ctx context.Context, id string, order []byte) (task.Owner, error)
	// Began is told when a verb starts, with the context that ends it: what fails
	// before is a wrong use. Printer, Config and Input wait no longer than that.
	Began func(ctx context.Context)

	once sync.Once
	book triage.Book
}

// Version is what `sbx version` tells.
type Version struct {
	Version string
	Commit  string
	Go      string
	OS      string
	Arch    string
}

// Globals are the flags that every verb takes.
type Globals struct {
	Providers []string
	Output    string
	Columns   []string
	Timeout   string
	Config    string
	NoColor   bool
	Quiet     bool
	Verbose   int
	// Settings are flags of a verb that stand above the configuration, by their
	// names; a verb sets them before it asks for Config.
	Settings map[string]string
}

func (d *Deps) now() time.Time { return d.Process.Now() }

// thresholds are those of one sandbox: what its profile says of its agent type.
func (d *Deps) thresholds(s sandbox.Sandbox) triage.Thresholds {
	d.once.Do(func() { d.book = d.thresholdBook() })
	return d.book.For(s)
}

func (d *Deps) thresholdBook() triage.Book {
	book := triage.Book{Default: triage.DefaultThresholds()}
	c, err := d.Config()
	if err != nil {
		return book
	}
	for _, p := range c.Profiles {
		if p.AgeOnly() {
			book.Overrides = append(book.Overrides, triage.Override{Profile: p.Name, Set: triage.Thresholds{AgeOnly: true}})
		}
		for kind, age := range p.StuckAfter() {
			book.Overrides = append(book.Overrides, triage.Override{Profile: p.Name, AgentType: kind, Set: triage.Thresholds{StuckAge: age}})
		}
	}
	return book
}
