package ops

import (
	"context"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// ListTasks reads all tasks that a query names.
func (e *Env) ListTasks(ctx context.Context, query store.TaskQuery) (tasks []task.Task, err error) {
	err = e.ReadTasks(func(ledger task.Ledger) (err error) {
		tasks, err = ledger.List(ctx, query)
		return err
	})
	return tasks, err
}

// ReadTasks opens what is kept of tasks, to be read.
func (e *Env) ReadTasks(do func(task.Ledger) error) error {
	return e.ReadTaskStore(func(st store.Store) error { return do(task.Ledger{Store: st}) })
}

// ReadTaskStore opens the store of tasks, to be read.
func (e *Env) ReadTaskStore(do func(store.Store) error) error {
	st, err := e.Store(false)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // nothing was written
	return do(st)
}

// OwnerAlive says whether a task's owner lives, where this machine can tell.
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
		return findKey(ctx, ledger, word, fault.Usage("%q is no id and no key of a task", word).WithHint("`sbx tasks` lists them"))
	}
	t, err := ledger.Read(ctx, word)
	if fault.KindOf(err) != fault.KindNotFound {
		return t, err
	}
	if strings.HasPrefix(word, "t-") && len(word) >= 2+sandbox.MinPrefix {
		found, err := ledger.List(ctx, store.TaskQuery{Prefix: word})
		switch {
		case err != nil:
			return t, err
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return t, fault.Usage("%q is the beginning of %d tasks", word, len(found)).WithHint("%s, %s, ...", found[0].ID, found[1].ID)
		}
	}
	return findKey(ctx, ledger, word, fault.New(fault.KindNotFound, "no task is called %q", word).WithHint("`sbx tasks` lists them"))
}

// findKey finds a task by its key, which may be any text; none where no task has it.
func findKey(ctx context.Context, ledger task.Ledger, key string, none error) (task.Task, error) {
	all, err := ledger.List(ctx, store.TaskQuery{})
	if err != nil {
		return task.Task{}, err
	}
	for _, one := range all {
		if one.Key != "" && one.Key == key {
			return one, nil
		}
	}
	return task.Task{}, none
}
