package metrics

import (
	"maps"
	"slices"
	"time"
)

// Reconcile is the figures of one comparison of records with sandboxes.
type Reconcile struct {
	Build           Build
	At              time.Time
	ExitCode        int
	DurationSeconds float64
	Profiles        []ReconcileFigures // those that were compared
}

// ReconcileFigures are the figures of one profile.
type ReconcileFigures struct {
	Profile string
	Rows    map[string]int // by class
	Found   int            // rows that need an action
}

// ReconcileLabels tell the files of reconcile from those of the cleanup layers in one folder.
func ReconcileLabels() []Label { return []Label{{"layer", "reconcile"}} }

// Set names the figures.
func (r Reconcile) Set() Set {
	var s Set
	all := ReconcileLabels()
	s.addBuild(r.Build, all)
	s.Gauge("sbx_reconcile_exit_code", "Exit code of the last run (sbx help exit-codes).", float64(r.ExitCode), all...)
	s.Gauge("sbx_reconcile_duration_seconds", "How long the last run took.", r.DurationSeconds, all...)
	s.Gauge("sbx_reconcile_last_run_timestamp_seconds", "When records and sandboxes were last compared.", unixSeconds(r.At), all...)
	for _, p := range r.Profiles {
		mine := append(slices.Clone(all), Label{"provider", p.Profile})
		for _, class := range slices.Sorted(maps.Keys(p.Rows)) {
			s.Gauge("sbx_reconcile_rows", "Records and sandboxes by class.", float64(p.Rows[class]), append(slices.Clone(mine), Label{"class", class})...)
		}
		s.Gauge("sbx_reconcile_found", "Records and sandboxes that need an action.", float64(p.Found), mine...)
	}
	return s
}

func (s *Set) addBuild(b Build, common []Label) {
	s.Gauge("sbx_build_info", "The version of sbx that wrote these metrics.", 1,
		append(slices.Clone(common), Label{"version", b.Version}, Label{"commit", b.Commit}, Label{"goversion", b.Go})...)
}
