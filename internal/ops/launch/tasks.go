package launch

import (
	"context"
	"slices"
	"time"

	"sbx/internal/metrics"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TasksRequest says which tasks are listed.
type TasksRequest struct {
	States []task.State  // none = any
	Since  time.Duration // how long ago at most they were launched; 0 = any time
	Limit  int           // the newest alone; 0 = all
	// Profiles are those to which all that a task has to do with must belong; none = all.
	Profiles []string
}

// TasksResult are the tasks, the newest first.
type TasksResult struct {
	Tasks     []ops.TaskState
	Truncated bool // there are more than the limit allows
}

// ListTasks lists the tasks on record.
func ListTasks(ctx context.Context, env *ops.Env, req TasksRequest) (*TasksResult, error) {
	r := &TasksResult{}
	return r, env.ReadTaskStore(func(st store.Store) error {
		tasks, err := task.Ledger{Store: st}.List(ctx, taskQuery(env, req))
		if err != nil {
			return err
		}
		state := env.TaskStates(ctx, st)
		for _, t := range tasks {
			if len(req.States) > 0 && !slices.Contains(req.States, t.State) || ops.TaskWithin(t, req.Profiles) != nil {
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
func TasksWithPrefix(ctx context.Context, env *ops.Env, prefix string, limit int) (tasks []task.Task) {
	_ = env.ReadTasks(func(ledger task.Ledger) (err error) { // without a store there are none
		tasks, err = ledger.List(ctx, store.TaskQuery{Prefix: prefix, Limit: limit})
		return err
	})
	return tasks
}

// ReportResult are figures of tasks beside their targets.
type ReportResult struct {
	Tasks   []task.Task // without those that only made sandboxes ahead (task.Spec.Warm)
	Figures []task.Figure
	At      time.Time // by the store's clock, which the tasks' times are from
}

// Report measures the tasks of the last while; 0 = of all time.
func Report(ctx context.Context, env *ops.Env, since time.Duration) (*ReportResult, error) {
	r := &ReportResult{At: env.Now()}
	err := env.ReadTasks(func(ledger task.Ledger) (err error) {
		r.Tasks, err = ledger.List(ctx, taskQuery(env, TasksRequest{Since: since}))
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
func (r *ReportResult) WriteTextfile(env *ops.Env, path string) error {
	return env.WriteTextfile(path, func() metrics.Set {
		m := metrics.Report{Build: env.BuildInfo()}
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

func taskQuery(e *ops.Env, req TasksRequest) store.TaskQuery {
	if req.Since == 0 {
		return store.TaskQuery{}
	}
	return store.TaskQuery{Since: e.Now().Add(-req.Since)}
}
