package tui

import (
	"context"
	"math"
	"time"

	"sbx/internal/output"
	"sbx/internal/views"
)

// OnceKeys is Once as the keys of a document: the figures of each profile that answered, as `stats` has
// them, and every sandbox by its group, as `ls --look` has it.
func OnceKeys(ctx context.Context, source Source, now func() time.Time) (keys views.DashboardKeys, errs []error) {
	m := NewModel(ctx, source, now, "", output.Cells{Plain: true})
	m.height = math.MaxInt32 // no row is off the screen
	errs = m.readOnce()
	for _, f := range m.feeds {
		if f.known {
			keys.Profiles = append(keys.Profiles, f.figures().Item())
		}
	}
	var groups [tabAll][]views.SandboxItem
	for _, r := range m.rows {
		if r.group < tabAll {
			groups[r.group] = append(groups[r.group], r.line(m.now()).Item())
		}
	}
	keys.Sandboxes = &views.DashboardGroups{
		Stuck: groups[tabStuck], AtRisk: groups[tabRisk], Unjudged: groups[tabUnjudged], Working: groups[tabWorking], Ended: groups[tabEnded],
	}
	return keys, errs
}

// figures are the figures of a profile, with the stuck ones by the newest verdicts.
func (f *feed) figures() views.StatsRow {
	s := views.StatsRow(f.round.Figures)
	s.Stuck = &f.stuck
	return s
}
