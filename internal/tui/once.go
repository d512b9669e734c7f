package tui

import (
	"context"
	"math"
	"time"

	"sbx/internal/output"
	"sbx/internal/views"
)

// OnceFields is Once as the keys of a document: the figures of each profile that answered, as `stats` has
// them, and every sandbox by its group, as `ls --look` has it.
func OnceFields(ctx context.Context, source Source, now func() time.Time) (fields output.Fields, errs []error) {
	m := NewModel(ctx, source, now, "", output.Cells{Plain: true})
	m.height = math.MaxInt32 // no row is off the screen
	errs = m.readOnce()
	profiles := []views.StatsItem{}
	for _, f := range m.feeds {
		if f.known {
			profiles = append(profiles, f.figures().Item())
		}
	}
	groups := output.Fields{}
	for t := range tabAll {
		rows := []views.SandboxItem{}
		for _, r := range m.rows {
			if r.group == t {
				rows = append(rows, r.line(m.now()).Item())
			}
		}
		groups = append(groups, output.Field{Key: t.key(), Value: rows})
	}
	return output.Fields{{Key: "profiles", Value: profiles}, {Key: "sandboxes", Value: groups}}, errs
}

// figures are those of a profile, with the stuck ones by the newest verdicts.
func (f *feed) figures() views.StatsRow {
	s := views.StatsRow(f.round.Figures)
	s.Stuck = &f.stuck
	return s
}

// key is the word of a tab in a document.
func (t tab) key() string {
	return [tabs]string{"stuck", "at_risk", "unjudged", "working", "ended", "all", "tasks"}[t]
}
