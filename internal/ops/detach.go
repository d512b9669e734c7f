package ops

import (
	"context"
	"encoding/json"

	"sbx/internal/fault"
	"sbx/internal/task"
)

// RunnerOrder is the order to a background runner, sent through a pipe: it holds values of the
// environment, so it is never stored.
type RunnerOrder struct {
	Task     string     `json:"task"`
	From     task.Owner `json:"from"` // who gives it
	Env      []string   `json:"env"`
	Push     string     `json:"push"` // with its credentials
	BudgetMB int64      `json:"budget_mb"`
	Joblog   string     `json:"joblog"`
}

// RunnerVerb is the hidden verb of a background runner.
const RunnerVerb = "run-task"

// StartRunner starts a background runner.
func (e *Env) StartRunner(ctx context.Context, o RunnerOrder) (task.Owner, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return task.Owner{}, err
	}
	runner, err := e.Background(ctx, o.Task, raw)
	if err != nil {
		return runner, fault.New(fault.KindLauncher, "the background runner of task %s could not be started: %w", o.Task, err).
			WithHint("`sbx stop %s` ends the task", o.Task)
	}
	return runner, nil
}

// startBackgroundRunner starts a background runner for a task that a sweep holds.
func (e *Env) startBackgroundRunner(ctx context.Context, t task.Task) (task.Owner, error) {
	return e.StartRunner(ctx, RunnerOrder{Task: t.ID, From: t.Owner})
}
