package ops

import (
	"cmp"
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
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
		ctx, stop := context.WithTimeout(ctx, e.Process.TimeScale.Limit(StoreTimeout))
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
