package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TaskState is a task and what is known beside its record.
type TaskState struct {
	task.Task
	Alive sandbox.Verdict // its owner
	Spent bool            // what it has kept was used or ended since
}

// GetTask reads the task that a word means, as FindTask finds it.
func GetTask(ctx context.Context, env *Env, word string) (state TaskState, err error) {
	err = env.ReadTaskStore(func(st store.Store) error {
		t, err := FindTask(ctx, task.Ledger{Store: st}, word)
		if err != nil {
			return HintSandbox(err, word, "inspect")
		}
		state = env.TaskStates(ctx, st)(t)
		return nil
	})
	return state, err
}

// TaskWithin is fault.KindNotFound where a task has to do with a profile that is none of these; none = all.
func TaskWithin(t task.Task, profiles []string) error {
	for _, name := range t.Profiles() {
		if len(profiles) > 0 && !slices.Contains(profiles, name) {
			return fault.New(fault.KindNotFound, "%s is a task of %s, and --provider names only %s", t.ID, name, strings.Join(profiles, ", "))
		}
	}
	return nil
}

// TaskStates gives tasks with what has become of their owners and of what they have kept.
func (e *Env) TaskStates(ctx context.Context, st store.Store) func(task.Task) TaskState {
	waiting, err := task.KeepList{Store: st}.Waiting(ctx)
	return func(t task.Task) TaskState {
		s := TaskState{Task: t, Alive: e.OwnerAlive(t.Owner)}
		if t.Kept != nil && err == nil {
			_, waits := waiting[t.Kept.Ref]
			s.Spent = !waits
		}
		return s
	}
}

// ReadTasks opens what is kept of tasks, to be read.
func (e *Env) ReadTasks(do func(task.Ledger) error) error {
	return e.ReadTaskStore(func(st store.Store) error { return do(task.Ledger{Store: st}) })
}

// WarnWithoutRecords warns where the store cannot be read: commands then continue
// without their history.
func (e *Env) WarnWithoutRecords(ctx context.Context, watch Reporter) {
	limited, stop := context.WithTimeout(ctx, e.Process.TimeScale.Limit(StoreTimeout))
	defer stop()
	err := e.ReadTasks(func(l task.Ledger) error {
		_, err := l.List(limited, store.TaskQuery{Limit: 1})
		return err
	})
	if err != nil && ctx.Err() == nil {
		e.WarnNew(watch, fmt.Errorf("without the history, which cannot be read: %w", err))
	}
}

// ReadTaskStore opens the store to read tasks, and closes it.
func (e *Env) ReadTaskStore(do func(store.Store) error) error {
	if err := e.RequireState(); err != nil {
		return err
	}
	st, err := e.Store(false)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // nothing was written
	return do(st)
}

// OwnerAlive says whether a task's owner lives, where this machine can know.
func (e *Env) OwnerAlive(o task.Owner) sandbox.Verdict {
	if e.Alive == nil || o.PID == 0 {
		return sandbox.Unknown
	}
	return e.Alive(o)
}

// FindTask finds a task by its id, a prefix that is its alone, or its key.
func FindTask(ctx context.Context, ledger task.Ledger, word string) (task.Task, error) {
	_, bad := sandbox.ParseRef(word)
	if bad != nil || strings.Contains(word, "/") {
		return findKey(ctx, ledger, word, fault.Usage("no task has the id or key %q", word).WithHint("`sbx tasks` lists them"))
	}
	t, err := ledger.Read(ctx, word)
	if fault.KindOf(err) != fault.KindNotFound {
		return t, err
	}
	if task.IsID(word) && len(word) >= len(sandbox.TaskIDPrefix)+sandbox.MinPrefix {
		found, err := ledger.List(ctx, store.TaskQuery{Prefix: word})
		switch {
		case err != nil:
			return t, err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return t, fault.Usage("%q is a prefix of %d tasks", word, len(found)).WithHint("%s, %s, ...", found[0].ID, found[1].ID)
		}
	}
	return findKey(ctx, ledger, word, fault.New(fault.KindNotFound, "no task is called %q", word).WithHint("`sbx tasks` lists them"))
}

// HintSandbox names the verb of sandboxes where a word that names no task is spelled like one.
func HintSandbox(err error, word, verb string) error {
	kind := fault.KindOf(err)
	if ref, bad := sandbox.ParseRef(word); bad != nil || ref.Bare() || (kind != fault.KindUsage && kind != fault.KindNotFound) {
		return err
	}
	return &fault.Error{Kind: kind, Err: err, Hint: word + " looks like a sandbox: `sbx " + verb + " " + word + "`"}
}

// findKey finds the newest task by its key, which may be any text, or a successor of it; none where no task has it.
func findKey(ctx context.Context, ledger task.Ledger, key string, none error) (task.Task, error) {
	all, err := ledger.List(ctx, store.TaskQuery{})
	if err != nil {
		return task.Task{}, err
	}
	for _, one := range all {
		if one.HasKey(key) {
			return one, nil
		}
	}
	return task.Task{}, none
}

// Why is what there is to say beside the state of a task.
func (t TaskState) Why() string {
	if t.Refused != "" {
		return t.Refused
	}
	return strings.TrimSpace(string(t.Phase) + " " + string(t.Reason))
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
