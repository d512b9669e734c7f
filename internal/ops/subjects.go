package ops

import (
	"context"
	"errors"

	"sbx/internal/alert"
	"sbx/internal/fleet"
	"sbx/internal/reconcile"
)

// plainSubjects are the figures without what only a message needs.
func plainSubjects(subjects []alertSubject) []alert.Subject {
	all := make([]alert.Subject, len(subjects))
	for i, s := range subjects {
		all[i] = s.Subject
	}
	return all
}

// RecordedSubjects are the figures that are on record of the selected providers, which are not
// asked: cleanups, creates, and the attempts and stops of tasks.
func RecordedSubjects(ctx context.Context, env *Env) ([]alert.Subject, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	var all []alert.Subject
	for _, name := range f.Names() {
		all = append(all, env.newAlertSubject(ctx, f, name).Subject)
	}
	return all, nil
}

// subjects are what the investigation has seen of each provider. Of one whose sandboxes were not
// judged in time, their count is not known.
func (d *diagnosis) subjects(ctx context.Context, look fleetLook, judged []fleet.Judged) []alert.Subject {
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
	return plainSubjects(d.env.verifySubjects(ctx, known, judged, look.quotas))
}

// comparedSubjects are the rows of a plan in which records and sandboxes disagree, counted for each
// provider that was compared.
func (r *reconcileRun) comparedSubjects(ctx context.Context, plan reconcile.Plan) []alert.Subject {
	var all []alert.Subject
	for _, side := range plan.Sides {
		s := r.env.newAlertSubject(ctx, nil, side.Profile)
		s.countRows(plan, nil)
		all = append(all, s.Subject)
	}
	return all
}

// quotaSubjects are the highest uses of quotas.
func (e *Env) quotaSubjects(ctx context.Context, names []string, quotas []fleet.ProviderQuota) []alert.Subject {
	var all []alert.Subject
	for _, name := range names {
		s := e.newAlertSubject(ctx, nil, name)
		s.Figures.QuotaUsed = highestUse(quotas, name)
		all = append(all, s.Subject)
	}
	return all
}
