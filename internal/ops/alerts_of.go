package ops

import (
	"cmp"
	"context"
	"slices"

	"sbx/internal/alert"
	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/notify"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// alertSubjects are what this run has seen, without what it has ended: an alert is about what is
// left.
func (r *cleanupRun) alertSubjects(ctx context.Context) []alertSubject {
	ctx, stop := context.WithTimeout(ctx, alert.StoreLimit)
	defer stop()
	runs := r.env.CleanupRuns(ctx, statusRuns) // with this one
	ended := endedRefs(r.endings)
	var all []alertSubject
	for _, share := range r.survey.Shares {
		s := r.env.recordedSubject(ctx, r.fleet, share.Profile)
		s.Figures.CleanupFailures = cleanup.SignalsOf(runs, share.Profile).CleanupFailures
		if used, known := r.used[share.Profile]; known {
			s.Figures.QuotaUsed = &used
		}
		r.countShare(&s, share, ended)
		all = append(all, s)
	}
	return all
}

// countShare counts what is left of a complete share.
func (r *cleanupRun) countShare(s *alertSubject, share cleanup.Share, ended map[sandbox.Ref]bool) {
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
			stuck = append(stuck, stuckItem(box, v))
		case leaveOpen(v):
			open++
		}
	}
	if s.Figures.Active != nil { // the survey lists what the fleet has counted
		s.Figures.Active = &active
	}
	s.countStuck(stuck, open)
}

func stuckItem(s sandbox.Sandbox, v triage.Verdict) notify.Item {
	return notify.Item{Ref: s.Ref().String(), Task: s.TaskID, Cause: causeWord(v), Reason: v.Reason}
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
func (r *reconcileRun) alertSubjects(ctx context.Context, result *ReconcileResult) []alertSubject {
	ctx, stop := context.WithTimeout(ctx, alert.StoreLimit)
	defer stop()
	repaired := endedRefs(result.Endings)
	var all []alertSubject
	for _, name := range r.fleet.Names() {
		s := r.env.recordedSubject(ctx, r.fleet, name)
		s.Figures.Active = nil // this verb may have ended some; cleanup and verify count them
		if slices.ContainsFunc(result.Plan.Sides, func(side reconcile.Side) bool { return side.Profile == name }) {
			s.countRows(result.Plan, repaired)
		}
		all = append(all, s)
	}
	return all
}

// countRows counts the rows in which records and sandboxes are proved to disagree. A row that
// could not be read keeps a count of none from being known.
func (s *alertSubject) countRows(plan reconcile.Plan, repaired map[sandbox.Ref]bool) {
	var orphans, differ, open int64
	for _, row := range plan.Rows {
		switch {
		case row.Ref.Provider != s.Provider || repaired[row.Ref]:
		case row.Err != nil:
			open++
		case row.Verdict != sandbox.True || !row.Found():
		case row.Class == reconcile.RealOnly:
			orphans++
			s.items["orphans_found"] = append(s.items["orphans_found"], notify.Item{Ref: row.Ref.String(), Reason: row.Reason})
		default:
			differ++
			s.items["state_corruption"] = append(s.items["state_corruption"], notify.Item{Ref: row.Ref.String(), Reason: row.Reason})
		}
	}
	if orphans > 0 || open == 0 {
		s.Orphans = &orphans
	}
	if differ > 0 || open == 0 {
		s.Corrupt = &differ
	}
}

// verifySubjects are what a round of verify has seen.
func (e *Env) verifySubjects(stats []fleet.ProviderStats, judged []fleet.Judged, quotas []fleet.ProviderQuota) []alertSubject {
	var all []alertSubject
	for _, one := range stats {
		s := e.newAlertSubject(one.Provider)
		s.addFigures(one.Signals(s.Limits.StuckAge, e.Now()), e.Now())
		s.Figures.QuotaUsed = cmp.Or(highestUse(quotas, one.Provider), s.Figures.QuotaUsed)
		if one.ItemsErr == nil {
			s.countJudged(judged)
		}
		all = append(all, s)
	}
	return all
}

// countJudged counts what was judged of this profile.
func (s *alertSubject) countJudged(judged []fleet.Judged) {
	var stuck []notify.Item
	open, unjudged := 0, int64(0)
	for _, j := range judged {
		if j.Sandbox.Provider != s.Provider {
			continue
		}
		if j.Verdict.Unjudged() {
			unjudged++
		}
		switch {
		case j.Verdict.Stuck == sandbox.True:
			stuck = append(stuck, stuckItem(j.Sandbox, j.Verdict))
		case leaveOpen(j.Verdict):
			open++
		}
	}
	s.Unjudged = &unjudged
	s.countStuck(stuck, open)
}
