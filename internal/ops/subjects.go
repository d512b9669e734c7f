package ops

import (
	"context"
	"errors"

	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/reconcile"
)

// plainSubjects are the figures without what only a message needs.
func plainSubjects(subjects []alertSubject) []check.Subject {
	all := make([]check.Subject, len(subjects))
	for i, s := range subjects {
		all[i] = s.Subject
	}
	return all
}

// RecordedSubjects are the figures that are on record of the selected providers, which are not
// asked: cleanups, creates, and the attempts and stops of tasks.
func RecordedSubjects(ctx context.Context, env *Env) ([]check.Subject, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	var all []check.Subject
	for _, name := range f.Names() {
		all = append(all, env.recordedSubject(ctx, f, name).Subject)
	}
	return all, nil
}

// subjects are what the investigation has seen of each provider. Of one whose sandboxes were not
// judged in time, their count is not known.
func (d *diagnosis) subjects(look fleetLook, judged []fleet.Judged) []check.Subject {
	var known []fleet.ProviderStats
	for _, p := range look.profiles {
		if p.stats == nil {
			continue
		}
		stats := *p.stats
		if !p.listed {
			stats.ItemsErr = errors.Join(stats.ItemsErr, unansweredError(stats.Provider))
		}
		known = append(known, stats)
	}
	return plainSubjects(d.env.verifySubjects(known, judged, look.quotas))
}

// comparedSubjects are the rows of a plan in which records and sandboxes disagree, counted for each
// provider that was compared.
func (r *reconcileRun) comparedSubjects(plan reconcile.Plan) []check.Subject {
	var all []check.Subject
	for _, side := range plan.Sides {
		s := r.env.newAlertSubject(side.Profile)
		s.countRows(plan, nil)
		all = append(all, s.Subject)
	}
	return all
}

// quotaSubjects are the highest uses of quotas.
func (e *Env) quotaSubjects(names []string, quotas []fleet.ProviderQuota) []check.Subject {
	var all []check.Subject
	for _, name := range names {
		s := e.newAlertSubject(name)
		s.Figures.QuotaUsed = highestUse(quotas, name)
		all = append(all, s.Subject)
	}
	return all
}
