package cleanup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cron"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/triage"
)

func TestSignalsOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	run := func(ago time.Duration, share runs.Profile, end *runs.Conclusion) runs.History {
		h := runs.History{Begin: runs.Begin{Layer: "stuck"}, StartedAt: now.Add(-ago), Conclusion: end}
		if end != nil {
			h.EndedAt = h.StartedAt
		}
		h.Begin.Plan.MadeAt = h.StartedAt
		share.Profile = "prod"
		h.Begin.Profiles = []runs.Profile{share}
		return h
	}
	good, failed := &runs.Conclusion{Succeeded: []string{"prod"}}, &runs.Conclusion{ExitCode: 7}
	full := func(active int) runs.Profile { return runs.Profile{Complete: true, Active: &active} }
	sample := func(ago time.Duration, n int64) triage.ActiveCount {
		return triage.ActiveCount{At: now.Add(-ago), Active: n}
	}
	seen := func(ago time.Duration, failures int64, history ...triage.ActiveCount) triage.FleetSignals {
		return triage.FleetSignals{CleanupRead: true, CleanupSeen: now.Add(-ago), CleanupFailures: &failures, History: history}
	}
	never := func(failures int64, history ...triage.ActiveCount) triage.FleetSignals {
		return triage.FleetSignals{CleanupRead: true, CleanupFailures: &failures, History: history}
	}
	refused := &runs.Conclusion{ExitCode: 11, Refused: true}
	withRefusals := func(s triage.FleetSignals, n int64) triage.FleetSignals {
		s.CleanupRefusals = n
		return s
	}
	aMinuteAgo := now.Add(-time.Minute)
	shared := runs.History{Begin: runs.Begin{Layer: "age"}, StartedAt: aMinuteAgo, EndedAt: aMinuteAgo, Conclusion: good, Sums: &fleet.Counts{}}
	unproved := run(time.Minute, runs.Profile{Complete: true}, good)
	unproved.Begin.Layer, unproved.Begin.CoverageGap = "", cron.GapNoLayer
	broken := run(time.Minute, full(1), good)
	broken.Broken = "a line was changed"
	for name, tc := range map[string]struct {
		list []runs.History
		want triage.FleetSignals
	}{
		"no run is recorded":                           {nil, triage.FleetSignals{}},
		"of another profile":                           {[]runs.History{{Begin: runs.Begin{Profiles: []runs.Profile{{Profile: "other"}}}, Conclusion: failed}}, triage.FleetSignals{}},
		"of a rule that proves none":                   {[]runs.History{unproved}, never(0)},
		"a good one":                                   {[]runs.History{run(time.Minute, full(3), good)}, seen(time.Minute, 0, sample(time.Minute, 3))},
		"failed since the last good":                   {[]runs.History{run(1, full(5), failed), run(2, full(4), failed), run(3, full(3), good), run(4, full(2), failed)}, seen(3, 2, sample(1, 5), sample(2, 4), sample(3, 3), sample(4, 2))},
		"it runs":                                      {[]runs.History{run(1, full(5), nil), run(2, full(4), failed)}, never(1, sample(1, 5), sample(2, 4))},
		"a guard refused it":                           {[]runs.History{run(1, full(5), refused), run(2, full(4), failed), run(3, full(3), good)}, withRefusals(seen(3, 1, sample(1, 5), sample(2, 4), sample(3, 3)), 1)},
		"what nobody owns is left":                     {[]runs.History{run(1, runs.Profile{Complete: true, Unowned: 3}, failed)}, never(0)},
		"only an owner is missing":                     {[]runs.History{run(1, runs.Profile{Complete: true, Unowned: 3}, &runs.Conclusion{})}, seen(1, 0)},
		"only an owner is missing, and nobody watches": {[]runs.History{run(1, runs.Profile{Complete: true, Unowned: 3}, &runs.Conclusion{ExitCode: 11})}, seen(1, 0)},
		"an incomplete listing":                        {[]runs.History{run(1, runs.Profile{Active: new(2)}, failed)}, never(1)},
		"of another host":                              {[]runs.History{shared}, seen(time.Minute, 0)},
		"it was changed or damaged":                    {[]runs.History{broken}, triage.FleetSignals{}},
		"an older journal counts none":                 {[]runs.History{run(1, runs.Profile{Complete: true, Fleet: 7}, good)}, seen(1, 0)},
	} {
		assert.Equal(t, tc.want, SignalsOf(tc.list, "prod"), name)
	}
}
