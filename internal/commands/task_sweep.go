package commands

import (
	"context"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// withTasks opens the store and joins it with a fleet. Launching and stopping fail
// closed: without a store nothing of it is done.
func (d *Deps) withTasks(ctx context.Context, parts TaskParts, do func(store.Store, task.Options) error) error {
	st, err := d.Store(true)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what had to be kept was kept by its own call
	c, err := d.Config()
	if err != nil {
		return err
	}
	parts.Store, parts.Protected = st, func(s sandbox.Sandbox) string { return d.protection(c, nil).Keeps(s, safety.ByWord) }
	options, err := d.Tasks(ctx, parts)
	if err != nil {
		return err
	}
	return do(st, options)
}

// sweepTasks settles what dead processes left and ends what was kept for long enough,
// for a moment at most.
func (d *Deps) sweepTasks(ctx context.Context, p *output.Printer, options task.Options) {
	options.Continue = d.continues
	adopted, err := task.Sweep(ctx, options)
	for _, a := range adopted {
		p.Note(fmt.Sprintf("task %s was left by a dead process: it is %s now", a.Task.ID, told(string(a.Task.State), string(a.Task.Phase))))
		if fault.KindOf(a.Err) == fault.KindLauncher {
			p.Warn(a.Err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("tasks that dead processes left could not be looked at: " + err.Error())
	}
	ended, err := task.EndKept(ctx, options)
	for _, ref := range ended {
		p.Note(ref.String() + " was kept until its time was over: it is gone now")
	}
	if err != nil && ctx.Err() == nil {
		p.Warn("sandboxes that were kept could not be looked at: " + err.Error())
	}
}
