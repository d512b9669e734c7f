package cleanup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cron"
	"sbx/internal/fleet"
	"sbx/internal/triage"
)

func TestSignalsOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	run := func(ago time.Duration, share ShareRecord, end *End) History {
		h := History{Begin: Begin{Layer: "stuck"}, StartedAt: now.Add(-ago), End: end}
		if end != nil {
			h.EndedAt = h.StartedAt
		}
		h.Begin.Plan.MadeAt = h.StartedAt
		share.Profile = "prod"
		h.Begin.Profiles = []ShareRecord{share}
		return h
	}
	good, failed := &End{Succeeded: []string{"prod"}}, &End{ExitCode: 7}
	full := func(active int) ShareRecord { return ShareRecord{Complete: true, Active: &active} }
	sample := func(ago time.Duration, n int64) triage.ActiveCount {
		return triage.ActiveCount{At: now.Add(-ago), Active: n}
	}
	seen := func(ago time.Duration, failures int64, history ...triage.ActiveCount) triage.FleetSignals {
		return triage.FleetSignals{CleanupRead: true, CleanupSeen: now.Add(-ago), CleanupFailures: &failures, History: history}
	}
	never := func(failures int64, history ...triage.ActiveCount) triage.FleetSignals {
		return triage.FleetSignals{CleanupRead: true, CleanupFailures: &failures, History: history}
	}
	refused := &End{ExitCode: 11, Refused: true}
	withRefusals := func(s triage.FleetSignals, n int64) triage.FleetSignals {
		s.CleanupRefusals = n
		return s
	}
	shared := History{Begin: Begin{Layer: "age"}, StartedAt: now.Add(-time.Minute), EndedAt: now.Add(-time.Minute), End: good, Sums: &fleet.Counts{}}
	unproved := run(time.Minute, ShareRecord{Complete: true}, good)
	unproved.Begin.Layer, unproved.Begin.Shortfall = "", cron.ShortfallNoLayer
	broken := run(time.Minute, full(1), good)
	broken.Broken = "a line was changed"
	for name, tc := range map[string]struct {
		runs []History
		want triage.FleetSignals
	}{
		"no run is recorded":                           {nil, triage.FleetSignals{}},
		"of another profile":                           {[]History{{Begin: Begin{Profiles: []ShareRecord{{Profile: "other"}}}, End: failed}}, triage.FleetSignals{}},
		"of a rule that proves none":                   {[]History{unproved}, never(0)},
		"a good one":                                   {[]History{run(time.Minute, full(3), good)}, seen(time.Minute, 0, sample(time.Minute, 3))},
		"failed since the last good":                   {[]History{run(1, full(5), failed), run(2, full(4), failed), run(3, full(3), good), run(4, full(2), failed)}, seen(3, 2, sample(1, 5), sample(2, 4), sample(3, 3), sample(4, 2))},
		"it runs":                                      {[]History{run(1, full(5), nil), run(2, full(4), failed)}, never(1, sample(1, 5), sample(2, 4))},
		"a guard refused it":                           {[]History{run(1, full(5), refused), run(2, full(4), failed), run(3, full(3), good)}, withRefusals(seen(3, 1, sample(1, 5), sample(2, 4), sample(3, 3)), 1)},
		"what nobody owns is left":                     {[]History{run(1, ShareRecord{Complete: true, Unowned: 3}, failed)}, never(0)},
		"only an owner is missing":                     {[]History{run(1, ShareRecord{Complete: true, Unowned: 3}, &End{})}, seen(1, 0)},
		"only an owner is missing, and nobody watches": {[]History{run(1, ShareRecord{Complete: true, Unowned: 3}, &End{ExitCode: 11})}, seen(1, 0)},
		"an incomplete listing":                        {[]History{run(1, ShareRecord{Active: new(2)}, failed)}, never(1)},
		"of another host":                              {[]History{shared}, seen(time.Minute, 0)},
		"it was changed or damaged":                    {[]History{broken}, triage.FleetSignals{}},
		"an older journal counts none":                 {[]History{run(1, ShareRecord{Complete: true, Fleet: 7}, good)}, seen(1, 0)},
	} {
		assert.Equal(t, tc.want, SignalsOf(tc.runs, "prod"), name)
	}
}
