package look

import (
	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/notify"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// quotaSubjects are the highest uses of quotas.
func quotaSubjects(e *ops.Env, names []string, quotas []fleet.ProviderQuota) []check.Subject {
	var all []check.Subject
	for _, name := range names {
		s := e.NewAlertSubject(name)
		ops.NoteQuota(&s.Figures, quotas, name)
		all = append(all, s.Subject)
	}
	return all
}

// verifySubjects are what a round of verify has seen.
func verifySubjects(e *ops.Env, stats []fleet.ProviderStats, judged []fleet.Judged, quotas []fleet.ProviderQuota) []ops.AlertSubject {
	var all []ops.AlertSubject
	for _, one := range stats {
		s := e.NewAlertSubject(one.Provider)
		s.Figures = one.Signals(s.Limits.StuckAge, e.Now())
		ops.NoteQuota(&s.Figures, quotas, one.Provider)
		if one.ItemsErr == nil {
			countJudged(&s, judged)
		}
		all = append(all, s)
	}
	return all
}

// countJudged counts what was judged of this profile.
func countJudged(s *ops.AlertSubject, judged []fleet.Judged) {
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
			stuck = append(stuck, ops.StuckItem(j.Sandbox, j.Verdict))
		case ops.LeaveOpen(j.Verdict):
			open++
		}
	}
	s.Unjudged = &unjudged
	s.CountStuck(stuck, open)
}
