package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOverForTakesEverySampleOfADayOrMore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	hourly := func(hours int, active ...int64) []ActiveCount { // the given ones are the oldest
		var all []ActiveCount
		for i := range hours + 1 {
			c := ActiveCount{At: now.Add(-time.Duration(hours-i) * time.Hour), Active: 236}
			if i < len(active) {
				c.Active = active[i]
			}
			all = append(all, c)
		}
		return all
	}
	for name, tc := range map[string]struct {
		samples []ActiveCount
		active  time.Duration
	}{
		"none":              {nil, 0},
		"one":               {hourly(0), 0},
		"23 hours":          {hourly(23), 0},
		"a day":             {hourly(24), 24 * time.Hour},
		"two days":          {hourly(48), 48 * time.Hour},
		"at the limit once": {hourly(48, 236, 236, 20), 45 * time.Hour},
		"within it today":   {hourly(48, append(make([]int64, 40), 20)...), 0},
		"a day unseen":      {append(hourly(72)[:49], ActiveCount{At: now, Active: 236}), 0},
		"unseen since":      {hourly(72)[:49], 0},
		"of the future":     {[]ActiveCount{{now.Add(time.Hour), 236}, {now.Add(30 * time.Hour), 236}}, 0},
	} {
		assert.Equal(t, tc.active, NewOverFor(tc.samples, DefaultThresholds(), now).Active, name)
	}
	grown := NewOverFor(hourly(48, 30, 30, 30), DefaultThresholds(), now)
	assert.Equal(t, OverFor{Active: 48 * time.Hour, Normal: 48 * time.Hour, Escalate: 45 * time.Hour}, grown, "each limit by itself")
	grown = NewOverFor(append(hourly(48)[:40], ActiveCount{now, 30}), DefaultThresholds(), now)
	assert.Zero(t, grown.Escalate, "what grows from 30 to 60 is escalated")
}

func TestGivenIsWhatWasConfigured(t *testing.T) {
	t.Parallel()
	given := DefaultThresholds().With(Thresholds{ActiveMax: 20}).With(Thresholds{StuckAge: time.Hour}).Given
	assert.Equal(t, Given{Active: true}, given, "also where it is the default's figure")
	assert.Equal(t, Given{}, DefaultThresholds().Given)
}
