package ops

import (
	"context"
	"maps"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/runs"
)

// CleanupStatusRequest says how often cleanup should run.
type CleanupStatusRequest struct {
	Every time.Duration
}

// CleanupStatusResult is the state of cleanup, as a status and as a check.
type CleanupStatusResult struct {
	Status cron.Status
	Check  Check
	Errors []error // journals that cannot be read or trusted

	Profiles []string // that cleanup should reach
	Runs     []cron.Run
}

// CleanupStatus says from what is recorded whether cleanup runs as often as it should.
func CleanupStatus(ctx context.Context, env *Env, req CleanupStatusRequest) (*CleanupStatusResult, error) {
	names, err := env.profileNames()
	if err != nil {
		return nil, err
	}
	if err := env.RequireState(); err != nil {
		return nil, err
	}
	runs, errs := env.CronRuns(ctx, runs.VerbCleanup)
	return env.JudgeCleanup(names, runs, errs, req.Every), nil
}

// JudgeCleanup is the state of cleanup by its recorded runs.
func (e *Env) JudgeCleanup(profiles []string, runs []cron.Run, errs []error, every time.Duration) *CleanupStatusResult {
	s := cleanup.JudgeRuns(runs, profiles, every, e.Now())
	check := ToolCheck("cleanup", s.Verdict, s.Message, e.cleanupStatusHint(s))
	return &CleanupStatusResult{Status: s, Check: check, Errors: errs, Profiles: profiles, Runs: runs}
}

// StatusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const StatusRuns = 600

func (e *Env) cleanupStatusHint(s cron.Status) string {
	if len(s.Unowned) > 0 && !s.Overdue {
		return e.OwnHint(slices.Sorted(maps.Keys(s.Unowned)))
	}
	if s.Overdue && s.Refused {
		return e.refusedLayerHint(s)
	}
	return "`" + e.Process.Name() + " cleanup runs` shows what ran"
}
