package cron

import (
	"context"
	"maps"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/ops"
	"sbx/internal/runs"
)

// CleanupStatusRequest says how often cleanup should run.
type CleanupStatusRequest struct {
	Every time.Duration
}

// CleanupStatusResult is the state of cleanup, as a status and as a check.
type CleanupStatusResult struct {
	Status cron.Status
	Check  ops.Check
	Errors []error // journals that cannot be read or trusted
}

// CleanupStatus says from what is recorded whether cleanup runs as often as it should.
func CleanupStatus(ctx context.Context, env *ops.Env, req CleanupStatusRequest) (*CleanupStatusResult, error) {
	names, err := env.SelectedNames()
	if err != nil {
		return nil, err
	}
	if err := env.RequireState(); err != nil {
		return nil, err
	}
	runs, errs := Runs(ctx, env, runs.VerbCleanup)
	s := cleanup.JudgeRuns(runs, names, req.Every, env.Now())
	return &CleanupStatusResult{Status: s, Check: ops.ToolCheck("cleanup", s.Verdict, s.Message, cleanupStatusHint(env, s)), Errors: errs}, nil
}

func cleanupStatusHint(e *ops.Env, s cron.Status) string {
	if len(s.Unowned) > 0 && !s.Overdue {
		return e.OwnHint(slices.Sorted(maps.Keys(s.Unowned)))
	}
	if s.Overdue && s.Refused {
		return refusedLayerHint(e, s)
	}
	return "`" + e.Process.Name() + " cleanup runs` shows what ran"
}
