package commands

import (
	"cmp"
	"context"
	"slices"

	"sbx/internal/cleanup"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/ops/look"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/task"
)

// Tasks are the tasks on record, the newest first.
func (s dashboardSource) Tasks(ctx context.Context) ([]ops.TaskState, error) {
	r, err := launch.ListTasks(ctx, s.Env, launch.TasksRequest{})
	return r.Tasks, err
}

// planRequest says what an act of the dashboard is about.
type planRequest struct {
	Verb  string            // VerbTerminate, VerbCleanup, VerbReconcile or VerbStop
	Boxes []sandbox.Sandbox // of terminate and stop; the others choose in all profiles
	Line  []string          // as a person types it, quoted for a shell
}

// planLive reads what an act would do now. Nothing is changed.
func planLive(ctx context.Context, l *look.Live, req planRequest, watch ops.Observer) (*ops.Act, error) {
	c, err := l.Env.Config()
	if err != nil {
		return nil, err
	}
	switch req.Verb {
	case runs.VerbTerminate:
		t := end.TerminateRequest{Grace: end.EndGrace, Production: c.Production, Line: req.Line, Shown: true}
		for _, box := range req.Boxes {
			t.Words = append(t.Words, box.Ref().String())
			t.Planned = append(t.Planned, ops.PlannedEnd{Ref: box.Ref(), Sandbox: box})
		}
		t.Typed = t.Words
		act, err := end.PlanTerminate(ctx, l.Env, t)
		if err != nil {
			return nil, err
		}
		for i, one := range act.Targets {
			act.Targets[i].Reason = cmp.Or(l.WhyStuck(one.Ref), one.Reason)
		}
		return act, nil
	case runs.VerbCleanup:
		rule, err := selector.Compile(selector.Options{Now: l.Env.Now(), Stuck: true})
		if err != nil {
			return nil, err
		}
		seen, err := end.PlanCleanup(
			ctx, l.Env, end.CleanupRequest{Rule: cleanup.Rule{Selector: rule}, Grace: end.EndGrace, Production: c.Production, Line: req.Line}, watch,
		)
		if err != nil {
			return nil, err
		}
		return seen.Act(), nil
	case runs.VerbReconcile:
		seen, err := end.Reconcile(ctx, l.Env, end.ReconcileRequest{Rules: reconcile.DefaultRules(), Production: c.Production, Line: req.Line}, watch)
		if err != nil {
			return nil, err
		}
		return seen.Act(), nil
	}
	var tasks []string
	var kept []ops.PlannedEnd
	for _, box := range req.Boxes {
		switch id := box.TaskID; {
		case !task.IsID(id):
			kept = append(kept, ops.PlannedEnd{Ref: box.Ref(), Reason: "it belongs to no task of sbx; terminate ends it", Sandbox: box})
		case !slices.Contains(tasks, id):
			tasks = append(tasks, id)
		}
	}
	a, err := launch.PlanStop(ctx, l.Env, launch.StopRequest{Tasks: tasks, Line: req.Line})
	if err == nil {
		a.Kept = kept
	}
	return a, err
}
