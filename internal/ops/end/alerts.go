package end

import (
	"context"
	"slices"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// alertSubjects are what this run has seen, without what it has ended: an alert is about what is
// left.
func (r *cleanupRun) alertSubjects(ctx context.Context) []ops.AlertSubject {
	ctx, stop := context.WithTimeout(ctx, alert.StoreLimit)
	defer stop()
	profiles := make([]string, 0, len(r.survey.Shares))
	for _, share := range r.survey.Shares {
		profiles = append(profiles, share.Profile)
	}
	newest := r.env.Runs().SinceSuccess(ctx, runs.VerbCleanup, profiles, ops.StatusRuns) // with this one
	ended := endedRefs(r.endings)
	var all []ops.AlertSubject
	for _, share := range r.survey.Shares {
		s := r.env.RecordedSubject(ctx, r.fleet, share.Profile)
		s.Figures.CleanupFailures = cleanup.SignalsOf(newest, share.Profile).CleanupFailures
		if used, known := r.used[share.Profile]; known {
			s.Figures.QuotaUsed = &used
		}
		r.countShare(&s, share, ended)
		all = append(all, s)
	}
	return all
}

// countShare counts what is left of a complete share.
func (r *cleanupRun) countShare(s *ops.AlertSubject, share cleanup.Share, ended map[sandbox.Ref]bool) {
	if share.Err != nil || share.BelowQuota || r.fleet == nil {
		s.Figures.Active = nil
		return
	}
	var stuck []notify.Item
	open, active := 0, int64(0)
	for _, j := range slices.Concat(r.survey.Selected, r.survey.Kept) {
		box := j.Sandbox
		if box.Provider != share.Profile || ended[box.Ref()] {
			continue
		}
		if box.State == sandbox.StateRunning {
			active++
		}
		v := j.Verdict
		if v.Stuck == "" {
			v = triage.Judge(box, triage.Signals{}, r.env.Thresholds(box), r.survey.At)
		}
		switch {
		case v.Stuck == sandbox.True:
			stuck = append(stuck, ops.StuckItem(box, v))
		case ops.LeaveOpen(v):
			open++
		}
	}
	if s.Figures.Active != nil { // the survey lists what the fleet has counted
		s.Figures.Active = &active
	}
	s.CountStuck(stuck, open)
}

// endedRefs are the sandboxes that were seen to end.
func endedRefs(endings []sandbox.Ending) map[sandbox.Ref]bool {
	ended := map[sandbox.Ref]bool{}
	for _, e := range endings {
		if fleet.Verdict([]sandbox.Ending{e}, false) == nil {
			ended[e.Ref] = true
		}
	}
	return ended
}

// alertSubjects are what this comparison has seen, without what it has repaired.
func (r *reconcileRun) alertSubjects(ctx context.Context, result *ReconcileResult) []ops.AlertSubject {
	ctx, stop := context.WithTimeout(ctx, alert.StoreLimit)
	defer stop()
	repaired := endedRefs(result.Endings)
	var all []ops.AlertSubject
	for _, name := range r.fleet.Names() {
		s := r.env.RecordedSubject(ctx, r.fleet, name)
		s.Figures.Active = nil // this verb may have ended some; cleanup and verify count them
		if slices.ContainsFunc(result.Plan.Sides, func(side reconcile.Side) bool { return side.Profile == name }) {
			countRows(&s, result.Plan, repaired)
		}
		all = append(all, s)
	}
	return all
}

// countRows counts the rows in which records and sandboxes are proved to disagree. A row that
// could not be read keeps a count of none from being known.
func countRows(s *ops.AlertSubject, plan reconcile.Plan, repaired map[sandbox.Ref]bool) {
	var orphans, differ, open int64
	for _, row := range plan.Rows {
		switch {
		case row.Ref.Provider != s.Provider || repaired[row.Ref]:
		case row.Err != nil:
			open++
		case row.Verdict != sandbox.True || !row.NeedsAction():
		case row.Class == reconcile.RealOnly:
			orphans++
			s.Items["orphans_found"] = append(s.Items["orphans_found"], notify.Item{Ref: row.Ref.String(), Reason: row.Reason})
		default:
			differ++
			s.Items["state_corruption"] = append(s.Items["state_corruption"], notify.Item{Ref: row.Ref.String(), Reason: row.Reason})
		}
	}
	if orphans > 0 || open == 0 {
		s.Orphans = &orphans
	}
	if differ > 0 || open == 0 {
		s.Corrupt = &differ
	}
}

// comparedSubjects are the rows of a plan in which records and sandboxes disagree, counted for each
// provider that was compared.
func (r *reconcileRun) comparedSubjects(plan reconcile.Plan) []check.Subject {
	var all []check.Subject
	for _, side := range plan.Sides {
		s := r.env.NewAlertSubject(side.Profile)
		countRows(&s, plan, nil)
		all = append(all, s.Subject)
	}
	return all
}
