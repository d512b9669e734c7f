package ops

import (
	"context"
	"maps"
	"slices"
	"time"

	"sbx/internal/cron"
	"sbx/internal/sandbox"
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
}

// CleanupStatus says from what is recorded whether cleanup runs as often as it should.
func CleanupStatus(ctx context.Context, env *Env, req CleanupStatusRequest) (*CleanupStatusResult, error) {
	names, err := env.profileNames()
	if err != nil {
		return nil, err
	}
	runs, errs := env.cronRuns(ctx, VerbCleanup)
	s := judgeCleanupRuns(runs, names, req.Every, env.Now())
	return &CleanupStatusResult{Status: s, Check: ToolCheck("cleanup", s.Verdict, s.Message, env.cleanupStatusHint(s)), Errors: errs}, nil
}

// statusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const statusRuns = 600

// judgeCleanupRuns says whether cleanup runs (R53-R57, R127): a run of the
// layer stuck or age that left nothing undone, in every profile. A run by another rule
// is shown as the last one and proves nothing.
func judgeCleanupRuns(runs []cron.Run, profiles []string, every time.Duration, now time.Time) cron.Status {
	expected := cron.Expected{Layers: []cron.Layer{cron.Stuck, cron.Age, cron.Usage, ""}, Every: every, Profiles: profiles}
	for i, r := range runs {
		if r.Layer == cron.Usage && r.Shortfall == "" {
			runs[i].Shortfall = "it acts only where a quota runs short"
		}
	}
	s := cron.Judge([]cron.Expected{expected}, runs, now)[0]
	if s.LastRun.IsZero() {
		s.Verdict, s.Message = sandbox.False, s.Message+": the job is not running, runs elsewhere, or lacks --yes"
	}
	return s
}

// cleanupStatusHint is what to do about it.
func (e *Env) cleanupStatusHint(s cron.Status) string {
	if len(s.Unowned) > 0 && !s.Overdue {
		return e.OwnHint(slices.Sorted(maps.Keys(s.Unowned)))
	}
	return "`" + e.Process.Name() + " cleanup runs` shows what ran"
}
