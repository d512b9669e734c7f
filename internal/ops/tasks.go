package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/metrics"
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

// TasksRequest says which tasks are listed.
type TasksRequest struct {
	States []task.State  // none = any
	Since  time.Duration // how long ago at most they were launched; 0 = any time
	Limit  int           // the newest alone; 0 = all
}

// TasksResult are the tasks, the newest first.
type TasksResult struct {
	Tasks     []TaskState
	Truncated bool // there are more than the limit allows
}

// ListTasks lists the tasks on record.
func ListTasks(ctx context.Context, env *Env, req TasksRequest) (*TasksResult, error) {
	r := &TasksResult{}
	return r, env.readTaskStore(func(st store.Store) error {
		tasks, err := task.Ledger{Store: st}.List(ctx, env.taskQuery(req))
		if err != nil {
			return err
		}
		state := env.taskStates(ctx, st)
		for _, t := range tasks {
			if len(req.States) > 0 && !slices.Contains(req.States, t.State) {
				continue
			}
			if r.Truncated = req.Limit > 0 && len(r.Tasks) == req.Limit; r.Truncated {
				break
			}
			r.Tasks = append(r.Tasks, state(t))
		}
		return nil
	})
}

// TasksWithPrefix are the newest tasks whose ids begin so, as far as they can be read.
func TasksWithPrefix(ctx context.Context, env *Env, prefix string, limit int) (tasks []task.Task) {
	_ = env.ReadTasks(func(ledger task.Ledger) (err error) { // without a store there are none
		tasks, err = ledger.List(ctx, store.TaskQuery{Prefix: prefix, Limit: limit})
		return err
	})
	return tasks
}

// GetTask reads the task that a word means, as FindTask finds it.
func GetTask(ctx context.Context, env *Env, word string) (state TaskState, err error) {
	err = env.readTaskStore(func(st store.Store) error {
		t, err := FindTask(ctx, task.Ledger{Store: st}, word)
		if err != nil {
			return hintSandbox(err, word, "inspect")
		}
		state = env.taskStates(ctx, st)(t)
		return nil
	})
	return state, err
}

// ReportResult are figures of tasks beside their targets.
type ReportResult struct {
	Tasks   []task.Task // without those that only make sandboxes ahead
	Figures []task.Figure
	At      time.Time // by the store's clock, which the tasks' times are from
}

// Report measures the tasks of the last while; 0 = of all time.
func Report(ctx context.Context, env *Env, since time.Duration) (*ReportResult, error) {
	r := &ReportResult{At: env.Now()}
	err := env.ReadTasks(func(ledger task.Ledger) (err error) {
		r.Tasks, err = ledger.List(ctx, env.taskQuery(TasksRequest{Since: since}))
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Tasks = slices.DeleteFunc(r.Tasks, func(t task.Task) bool { return t.Spec.Warm }) // tasks without a publication
	if len(r.Tasks) > 0 {
		r.At = r.Tasks[0].ReadAt
	}
	r.Figures = task.Figures(r.Tasks, r.At)
	return r, nil
}

// WriteTextfile writes the figures for Prometheus, if a file is named.
func (r *ReportResult) WriteTextfile(env *Env, path string) error {
	return env.writeTextfile(path, func() metrics.Set {
		m := metrics.Report{Build: env.build()}
		for _, f := range r.Figures {
			one := metrics.ReportFigure{ID: f.ID, Unit: string(f.Unit), Value: f.Value, Samples: f.Samples}
			if v := f.Verdict(); v == sandbox.True || v == sandbox.False {
				one.Met = new(v == sandbox.True)
			}
			m.Figures = append(m.Figures, one)
		}
		return m.Set()
	})
}

func (e *Env) taskQuery(req TasksRequest) store.TaskQuery {
	if req.Since == 0 {
		return store.TaskQuery{}
	}
	return store.TaskQuery{Since: e.Now().Add(-req.Since)}
}

// taskStates gives tasks with what has become of their owners and of what they have kept.
func (e *Env) taskStates(ctx context.Context, st store.Store) func(task.Task) TaskState {
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
	return e.readTaskStore(func(st store.Store) error { return do(task.Ledger{Store: st}) })
}

// warnWithoutRecords warns where the store cannot be read: what was before is not known then, and
// looks go on without it.
func (e *Env) warnWithoutRecords(ctx context.Context, watch Reporter) {
	limited, stop := context.WithTimeout(ctx, e.Process.Stretch.Limit(memoryLimit))
	defer stop()
	err := e.ReadTasks(func(l task.Ledger) error {
		_, err := l.List(limited, store.TaskQuery{Limit: 1})
		return err
	})
	if err != nil && ctx.Err() == nil {
		e.warnNew(watch, fmt.Errorf("without the history, which cannot be read: %w", err))
	}
}

func (e *Env) readTaskStore(do func(store.Store) error) error {
	if err := e.requireState(); err != nil {
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

// hintSandbox names the verb of sandboxes where a word that names no task is spelled like one.
func hintSandbox(err error, word, verb string) error {
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
