package look

import (
	"context"
	"math"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// SuggestedLimits are limits of the count of active sandboxes of one profile that fit what was seen,
// and the figures behind them. Without a day of samples there are none: Err says so.
type SuggestedLimits struct {
	Profile     string
	Samples     int // of the last week
	First, Last time.Time
	Most        int64     // the maximum
	MostAt      time.Time // when it was seen first

	Active, Normal, Escalate int // as triage.Thresholds has them; 0 = not known
	MaxSandboxes             int // where neither the provider nor the configuration has a quota; 0 = it has
	Err                      error
}

// headroom is how far a limit is above the maximum that was seen, and escalation how far the limit
// of the escalation is above that, as between the defaults.
const (
	headroom   = 1.5
	escalation = 2.5
)

// SuggestLimits reads the samples of the last week of the selected profiles.
func SuggestLimits(ctx context.Context, env *ops.Env) ([]SuggestedLimits, error) {
	c, err := env.Config()
	if err != nil {
		return nil, err
	}
	names, err := env.SelectedNames()
	if err != nil {
		return nil, err
	}
	if err := env.RequireState(); err != nil {
		return nil, err
	}
	st, err := env.Store(false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Close() }() // nothing was written
	_, unmeasured := env.SplitByQuota(c.Selected())
	var all []SuggestedLimits
	for _, name := range names {
		counts, err := ops.ActiveCounts(ctx, st, name, env.Now().Add(-history.Rules().Keep))
		if err != nil {
			return nil, err
		}
		all = append(all, suggestFrom(name, counts, slices.Contains(unmeasured, name)))
	}
	return all, nil
}

// suggestFrom makes limits from counts, oldest first.
func suggestFrom(profile string, counts []triage.ActiveCount, noQuota bool) SuggestedLimits {
	s := SuggestedLimits{Profile: profile, Samples: len(counts)}
	if len(counts) == 0 {
		s.Err = tooFewSamples(profile, "no sample of the last week is stored")
		return s
	}
	s.First, s.Last = counts[0].At, counts[len(counts)-1].At
	most := slices.MaxFunc(counts, func(a, b triage.ActiveCount) int { return int(a.Active - b.Active) })
	s.Most, s.MostAt = most.Active, most.At
	if seen := s.Last.Sub(s.First); seen < triage.StandsFor {
		s.Err = tooFewSamples(profile, "the stored samples span "+sandbox.FormatDuration(seen))
		return s
	}
	least := triage.DefaultThresholds() // a profile that is hardly used keeps them
	s.Active = max(least.ActiveMax, int(math.Ceil(float64(s.Most)*headroom)))
	s.Normal = max(least.ActiveNormal, int(s.Most)+1)
	s.Escalate = int(math.Ceil(float64(s.Active) * escalation))
	if noQuota {
		s.MaxSandboxes = s.Active
	}
	return s
}

func tooFewSamples(profile, found string) error {
	return fault.New(fault.KindUnavailable, "%s; limits need those of a day", found).At(profile, "").
		WithHint("`sbx stats`, `sbx verify` and the lines of `sbx cron print` keep samples: run one of them from time to time")
}
