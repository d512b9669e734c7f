package ops

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// leaseAge is how old what is known of leases may be: a task may be launched while a
// plan waits for its answer.
const leaseAge = 2 * time.Second

// Leases knows which sandboxes tasks work in and which ones they have kept: only `sbx stop` may
// end those.
type Leases struct {
	load func(*Leases) error // with the verb's own context: a rule of protection is asked without one
	now  func() time.Time

	mu     sync.Mutex
	at     time.Time
	failed error
	tasks  map[string]string      // tasks at work, with the owner of each
	rooms  map[sandbox.Ref]string // which of them a sandbox is used by
	kept   map[sandbox.Ref]string // until when
}

// Leases reads the leases on first use.
func (e *Env) Leases(ctx context.Context) *Leases {
	return &Leases{now: time.Now, load: func(l *Leases) error {
		st, err := e.Store(false)
		if err != nil {
			return err
		}
		defer func() { _ = st.Close() }() // nothing was written
		ctx, stop := context.WithTimeout(ctx, e.Process.Stretch.Limit(MemoryLimit))
		defer stop()
		return l.readStore(ctx, st)
	}}
}

// Holds says why a sandbox is not to be ended; "" = no task holds it. Where leases
// cannot be read, whatever was made for a task stays.
func (l *Leases) Holds(s sandbox.Sandbox, byName bool) string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at.IsZero() || l.now().Sub(l.at) > leaseAge {
		l.failed = l.load(l)
		l.at = l.now()
	}
	if l.failed != nil {
		if !madeForTask(s) || byName {
			return ""
		}
		return "protected: it was made for task " + s.TaskID + ", and whether that task is active could not be read: " + l.failed.Error()
	}
	id := cmp.Or(l.rooms[s.Ref()], s.TaskID)
	if who, held := l.tasks[id]; held {
		return "protected: task " + id + " is at work in it (" + who + "); `sbx stop " + id + "` ends both"
	}
	if until, kept := l.kept[s.Ref()]; kept && !byName {
		return "protected: a task has kept it until " + until
	}
	return ""
}

// madeForTask says that sbx itself may have made the sandbox for a task: an SDK's own task
// names in its metadata are none of the store's.
func madeForTask(s sandbox.Sandbox) bool {
	return s.Labels[sandbox.LabelTask] != "" || task.IsID(s.TaskID)
}

// Err is why the leases could not be read on the last read; nil = they could, or were not read.
func (l *Leases) Err() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		return nil
	}
	return fault.New(fault.KindOf(l.failed), "the sandboxes of active tasks could not be read: %w", l.failed).
		WithHint("`sbx doctor` checks the store; until it can be read, sandboxes of tasks are kept")
}

func (l *Leases) readStore(ctx context.Context, st store.Store) error {
	l.tasks, l.rooms, l.kept = map[string]string{}, map[sandbox.Ref]string{}, map[sandbox.Ref]string{}
	tasks, err := task.Ledger{Store: st}.List(ctx, store.TaskQuery{Live: true})
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if !t.Held() {
			continue
		}
		l.tasks[t.ID] = t.Owner.Who
		for _, a := range t.Attempts { // also what another task was made for, and this one goes on in
			if a.GoneAt.IsZero() && a.Sandbox != "" {
				l.rooms[a.Ref()] = t.ID
			}
		}
	}
	waiting, err := task.KeepList{Store: st}.Waiting(ctx)
	for ref, until := range waiting {
		l.kept[ref] = until.UTC().Format(time.RFC3339)
	}
	return err
}

// SettleTasks brings what dead processes left of tasks further, for a moment at most,
// as everything that ends sandboxes does.
func (e *Env) SettleTasks(ctx context.Context, watch Reporter) {
	live := 0
	err := e.ReadTasks(func(ledger task.Ledger) error {
		tasks, err := ledger.List(ctx, store.TaskQuery{Live: true})
		live = len(tasks)
		return err
	})
	if err != nil || live == 0 {
		return
	}
	f, err := e.Only(ctx)
	if err == nil {
		err = e.WithTasks(ctx, TaskParts{Fleet: f, Watch: watch}, func(_ store.Store, o task.Options) error {
			e.SweepTasks(ctx, watch, o)
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("tasks of dead processes could not be settled: " + err.Error())
	}
}

// Undecided are the selected profiles without a configured owner: bulk endings touch only their
// sandboxes that carry sandbox.LabelOwner.
func Undecided(c *config.Config) []string {
	var names []string
	for _, p := range c.Selected() {
		if p.Undecided() {
			names = append(names, p.Name)
		}
	}
	return names
}

// OwnHint says what to write so that all sandboxes of these profiles, or those with a label, are ours: two
// lines to choose from, or the first alone where a provider keeps no labels.
func (e *Env) OwnHint(profiles []string) string {
	var labelled, unlabelled []string
	for _, name := range profiles {
		if e.keepsNoLabels(name) {
			unlabelled = append(unlabelled, name)
		} else {
			labelled = append(labelled, name)
		}
	}
	var hints []string
	for _, choice := range []struct {
		profiles []string
		or       string
	}{
		{labelled, ", --label KEY=VALUE `owned: {labels: {KEY: VALUE}}` (those with the label)"},
		{unlabelled, ""},
	} {
		if len(choice.profiles) > 0 {
			hints = append(hints, "`"+e.Process.Name()+" config own"+cron.ProviderFlags(choice.profiles)+" --all` writes `owned: all` (every sandbox there is yours)"+choice.or)
		}
	}
	return strings.Join(hints, "; ")
}

// keepsNoLabels reports whether no label can name an owner at a profile.
func (e *Env) keepsNoLabels(profile string) bool {
	c, err := e.Config()
	if err != nil {
		return false
	}
	p, known := c.Find(profile)
	return known && e.TypeOf(p).NoLabels
}

// SightFirst is the kind of the sightings that cleanup keeps in the store, of sandboxes without a
// known age.
const SightFirst = "first seen"

// Sightings reads the sightings of a kind on first use. A failed read counts as never seen,
// which keeps a sandbox.
func (e *Env) Sightings(ctx context.Context, watch Reporter, kind string) func() map[string]store.Sighting {
	return sync.OnceValue(func() (seen map[string]store.Sighting) {
		e.WriteStore(ctx, watch, false, func(ctx context.Context, st store.Store) (err error) {
			seen, err = st.Sightings(ctx, kind)
			return err
		})
		return seen
	})
}

// Protection is what keeps sandboxes from being ended.
func (e *Env) Protection(c *config.Config, held *Leases) safety.Protection {
	return safety.Protection{Now: e.Now, Configured: c.Protect.Covers, Leased: held.Holds}
}

// Limits are those of the configuration; allowed are the production profiles that the
// operator has named.
func (e *Env) Limits(c *config.Config, allowed []string) (safety.Limits, error) {
	for _, name := range allowed {
		if _, known := c.Find(name); !known {
			return safety.Limits{}, fault.Usage("--production: there is no profile %q", name)
		}
	}
	return safety.Limits{MaxDelete: c.Limits.MaxDelete, MaxFraction: int(c.Limits.MaxFraction), Production: c.Production, Allowed: allowed}, nil
}

// RunStarted is an item of operations that end sandboxes: from now on it acts.
type RunStarted struct{ RunID string }
