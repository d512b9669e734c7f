package look

import (
	"context"
	"errors"
	"slices"

	"sbx/internal/check"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	opscron "sbx/internal/ops/cron"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// fleetLook is what an investigation of all sandboxes has read in time: the only input of its
// conclusions.
type fleetLook struct {
	profiles []profileLook
	quotas   []fleet.ProviderQuota
	cleanup  *opscron.CleanupStatusResult // nil = not read
}

// profileLook is what was read of one profile.
type profileLook struct {
	name   string
	stats  *fleet.ProviderStats // the figures; nil = not read
	judged []fleet.Judged       // its sandboxes, in the order of the listing
	listed bool                 // they were judged
	late   error                // why something is missing
}

// judgedAll are the sandboxes of all profiles.
func (l fleetLook) judgedAll() []fleet.Judged {
	var all []fleet.Judged
	for _, p := range l.profiles {
		all = append(all, p.judged...)
	}
	return all
}

// concludeFleet draws the conclusions from what was read.
func (d *diagnosis) concludeFleet(ctx context.Context, look fleetLook) {
	r := d.result
	r.At, r.Lost = d.env.Now(), nil
	judged := look.judgedAll()
	var figures []Figures
	for _, p := range look.profiles {
		if !p.listed {
			r.Lost = append(r.Lost, p.name)
		}
		if p.late != nil {
			r.Errors = append(r.Errors, p.late)
		}
		if p.stats != nil {
			figures = append(figures, d.profileFigures(*p.stats, p.judged, look.quotas))
		}
	}
	r.Subjects = d.subjects(look, judged)
	r.Listed, r.Census = len(judged), censusOf(judged)
	r.Errors = ops.CauseOnce(ctx, append(r.Errors, ops.FailedLooks(judged)...))
	r.Stuck, r.Suspected = groupByCause(judged, isStuck), groupByCause(judged, isSuspected)
	for _, j := range judged {
		if j.Verdict.Unjudged() {
			r.Unjudged = append(r.Unjudged, j.Sandbox.Ref())
		}
	}
	d.countUnowned(judged)
	d.rankCauses(judged, figures)
	d.joinFleetFlags(figures, look.cleanup)
}

// countUnowned counts the stuck sandboxes that a cleanup would keep, since the configuration says of no owner that
// it is theirs.
func (d *diagnosis) countUnowned(judged []fleet.Judged) {
	c, err := d.env.Config()
	if err != nil {
		return // nothing was read without it
	}
	d.result.Unowned, d.result.MaxDelete = map[string]int{}, c.Limits.MaxDelete
	for _, j := range judged {
		if p, known := c.Find(j.Sandbox.Provider); known && isStuck(j) && !p.Owned.Owns(j.Sandbox.Labels) {
			d.result.Unowned[p.Name]++
		}
	}
}

// rankCauses ranks the causes of groups of sandboxes and those of profiles.
func (d *diagnosis) rankCauses(judged []fleet.Judged, figures []Figures) {
	r := d.result
	ofGroups := append(d.groupCauses(judged, isStuck, r.Stuck, stuckAt), d.groupCauses(judged, isSuspected, r.Suspected, suspectedAt)...)
	r.Causes = rankAll(ofGroups, d.fleetCauses(figures))
}

// joinFleetFlags is one flag of each id over all profiles, and behind them the notes of each: true where it is true of one, with the
// evidence of those; else unknown where it is unknown of one. That of cleanup is added where its state was read.
func (d *diagnosis) joinFleetFlags(figures []Figures, cleanup *opscron.CleanupStatusResult) {
	var all, notes []triage.Flag
	for _, profile := range figures {
		for _, f := range profile.Flags {
			f.Evidence = inProvider(profile.Provider, f.Evidence)
			i := slices.IndexFunc(all, func(have triage.Flag) bool { return have.ID == f.ID && have.Severity != triage.Info })
			switch {
			case f.Severity == triage.Info: // of one profile alone
				f.Say = profile.Provider + ": " + f.Say
				notes = append(notes, f)
			case i < 0:
				all = append(all, f)
			case all[i].Verdict == f.Verdict:
				all[i].Evidence = slices.Concat(all[i].Evidence, f.Evidence)
			case f.Verdict == sandbox.True, f.Verdict == sandbox.Unknown && all[i].Verdict == sandbox.False:
				all[i] = f
			}
		}
	}
	if cleanup != nil {
		all = append(all, cleanupFlag(cleanup, d.log))
	}
	d.result.Flags = append(all, notes...)
}

// inProvider writes the provider into evidence.
func inProvider(name string, evidence []sandbox.Evidence) []sandbox.Evidence {
	list := slices.Clone(evidence)
	for i := range list {
		list[i].What = name + ": " + list[i].What
	}
	return list
}

// fleetCauses are the causes that the figures of profiles show.
func (d *diagnosis) fleetCauses(figures []Figures) []triage.Finding {
	var all []triage.Finding
	for _, f := range figures {
		for _, c := range triage.FleetCauses(f.Counts, f.Flags, f.Limits, d.env.Now()) {
			c.Evidence = inProvider(f.Provider, c.Evidence)
			i := slices.IndexFunc(all, func(have triage.Finding) bool { return have.ID == c.ID && have.Confidence == c.Confidence })
			if i < 0 {
				all = append(all, c)
				continue
			}
			all[i].Evidence = append(all[i].Evidence, c.Evidence...)
		}
	}
	return all
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
	return ops.PlainSubjects(verifySubjects(d.env, known, judged, look.quotas))
}
