package end

import (
	"context"
	"slices"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/cron"
	"sbx/internal/fault"
	"sbx/internal/metrics"
	"sbx/internal/ops"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// withNotifications runs do, which acts, and reports the result.
func (r *cleanupRun) withNotifications(ctx context.Context, do func() error) error {
	return reportRun(ctx, r.env, r.watch, runReport{
		verb: runs.VerbCleanup, id: r.id, ping: r.req.Ping, textfile: r.req.Textfile, labels: metrics.Cleanup{Layer: r.metricSeries()}.Labels(),
		summary: r.runSummary, message: r.runMessage, subjects: r.alertSubjects,
		figures: func(ctx context.Context, code int, took time.Duration) metrics.Set {
			return r.runFigures(ctx, code, took, false).Set()
		},
	}, do)
}

// runFigures are the figures of this run. When a profile was last in order comes from the
// journals, which a dry or refused run cannot move.
func (r *cleanupRun) runFigures(ctx context.Context, code int, took time.Duration, dry bool) metrics.Cleanup {
	recorded, _ := r.env.Runs().All(ctx, runs.VerbCleanup, ops.StatusRuns) // what cannot be read counts as never: the alert fires
	m := metrics.Cleanup{
		Build: r.env.BuildInfo(),
		Layer: r.metricSeries(), ExitCode: code, DurationSeconds: took.Seconds(), Dry: dry, Refused: code == fault.KindRefused.Row().Code && r.onlyUnowned == nil,
	}
	for _, share := range r.survey.Shares {
		m.Profiles = append(m.Profiles, r.profileFigures(share, r.profileStatus(recorded, share.Profile)))
	}
	return m
}

func (r *cleanupRun) profileFigures(share cleanup.Share, status cron.Status) metrics.ProfileFigures {
	f := metrics.ProfileFigures{
		Profile: share.Profile, LastSuccess: status.LastSuccess, LastRun: status.LastRun, Complete: share.Err == nil, Candidates: share.Selected,
		Outcomes: map[string]int{}, Kept: map[string]int{},
	}
	for _, g := range cleanup.KeepReasons() {
		f.Kept[string(g)] = 0 // a rate over a series that appears late misses its first step
	}
	mine := func(s sandbox.Sandbox) bool { return s.Provider == share.Profile }
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		if age, source := j.Sandbox.Age(r.survey.At); mine(j.Sandbox) && source != sandbox.AgeUnknown {
			f.Ages = append(f.Ages, age)
			if j.Selected() && (f.OldestEligibleSeconds == nil || age.Seconds() > *f.OldestEligibleSeconds) {
				f.OldestEligibleSeconds = new(age.Seconds())
			}
		}
		if mine(j.Sandbox) && j.KeepReason == cleanup.KeepAgeUnknown {
			f.KeptUnknownAge++
		}
	}
	for _, j := range r.survey.Kept {
		if mine(j.Sandbox) {
			f.Kept[string(j.KeepReason)]++
		}
	}
	for _, e := range r.endings {
		if e.Ref.Provider == share.Profile {
			f.Outcomes[string(e.Outcome)]++
		}
	}
	f.Unverified = f.Outcomes[string(sandbox.OutcomeAccepted)] + f.Outcomes[string(sandbox.OutcomeStuck)]
	return f
}

// WriteDryTextfile writes the figures of a plan, if the request named a file.
func (r *CleanupResult) WriteDryTextfile(ctx context.Context, code int) error {
	return r.run.env.WriteTextfile(r.run.req.Textfile, func() metrics.Set { return r.run.runFigures(ctx, code, 0, true).Set() })
}
