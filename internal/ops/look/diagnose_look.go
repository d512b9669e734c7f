package look

import (
	"context"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
)

// fleetLook is what an investigation of all sandboxes has read in time: the only input of its
// conclusions, whether it was read now or comes from a snapshot.
type fleetLook struct {
	profiles []profileLook
	quotas   []fleet.ProviderQuota
	cleanup  *ops.CleanupStatusResult // nil = not read
}

// profileLook is what was read of one profile.
type profileLook struct {
	name   string
	read   fleet.ProviderStats  // what was read, also where something of it failed
	stats  *fleet.ProviderStats // the figures; nil = not read
	rows   []sandbox.Sandbox    // its complete listing; nil = there is none
	judged []fleet.Judged       // of the rows, in their order
	listed bool                 // the rows were judged
	late   error                // why something is missing
}

// readNow is what the sources have answered until now.
func (src *fleetSources) readNow() fleetLook {
	var look fleetLook
	look.quotas, _ = src.quotas.ready()
	if status, known := src.cleanup.ready(); known {
		look.cleanup = status
	}
	for i, name := range src.names {
		p := profileLook{name: name, read: fleet.ProviderStats{Provider: name}}
		stats, known := src.stats[i].ready()
		if src.stats[i].ended() {
			p.read = src.stats[i].value
			p.rows = p.read.Items
		}
		if known {
			p.stats = &stats
		}
		p.judged, p.listed = src.judged[i].ready()
		if !known || !p.listed {
			p.late = lateOr(name, src.stats[i], src.judged[i])
		}
		look.profiles = append(look.profiles, p)
	}
	return look
}

// judgedAll are the sandboxes of all profiles.
func (l fleetLook) judgedAll() []fleet.Judged {
	var all []fleet.Judged
	for _, p := range l.profiles {
		all = append(all, p.judged...)
	}
	return all
}

// statsAll are the figures of all profiles, those that are missing with their error.
func (l fleetLook) statsAll() []fleet.ProviderStats {
	var all []fleet.ProviderStats
	for _, p := range l.profiles {
		if p.stats == nil {
			all = append(all, fleet.ProviderStats{Provider: p.name, Err: p.late, ItemsErr: p.late})
			continue
		}
		all = append(all, *p.stats)
	}
	return all
}

// concludeFleet draws the conclusions from what was read.
func (d *diagnosis) concludeFleet(ctx context.Context, look fleetLook) {
	r := d.result
	r.At = d.env.Now()
	judged := look.judgedAll()
	var figures []Figures
	for _, p := range look.profiles {
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
	d.rankCauses(judged, figures)
	d.joinFleetFlags(figures, look.cleanup)
}
