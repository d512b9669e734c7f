package ops

import (
	"context"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// WithTasks opens the store and joins it with a fleet. Launching and stopping fail
// closed: without a store nothing of it is done.
func (e *Env) WithTasks(ctx context.Context, parts TaskParts, do func(store.Store, task.Options) error) error {
	st, err := e.Store(true)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what had to be kept was kept by its own call
	c, err := e.Config()
	if err != nil {
		return err
	}
	parts.Store, parts.Protected = st, func(s sandbox.Sandbox) string { return e.Protection(c, nil).Keeps(s, safety.ByWord) }
	options, err := e.Tasks(ctx, parts)
	if err != nil {
		return err
	}
	return do(st, options)
}

// SweepTasks settles what dead processes left and ends what was kept for long enough,
// for a moment at most.
func (e *Env) SweepTasks(ctx context.Context, watch Reporter, options task.Options) {
	options.Continue = e.startBackgroundRunner
	adopted, err := task.Sweep(ctx, options)
	for _, a := range adopted {
		watch.Note(fmt.Sprintf("task %s was left by a dead process: it is %s now", a.Task.ID, WithDetail(string(a.Task.State), string(a.Task.Phase))))
		if fault.KindOf(a.Err) == fault.KindLauncher {
			watch.Warn(a.Err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("tasks that dead processes left could not be looked at: " + err.Error())
	}
	ended, err := task.EndKept(ctx, options)
	for _, ref := range ended {
		watch.Note(ref.String() + " was kept until its time was over: it is gone now")
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("sandboxes that were kept could not be looked at: " + err.Error())
	}
}
