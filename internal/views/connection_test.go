package views_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
	"sbx/internal/views"
)

func TestConnectionWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		c                       fleet.Connection
		breaker, clock, latency string
	}{
		"nothing is known": {},
		"all is well":      {fleet.Connection{CompleteAt: now, Took: 1234 * time.Millisecond, Skew: 30 * time.Second}, "", "", "took 1.2s"},
		"it is ahead":      {fleet.Connection{Skew: 45 * time.Second}, "", "clock 45s ahead of ours", ""},
		"the breaker":      {fleet.Connection{OpenUntil: now.Add(400 * time.Millisecond)}, "calls paused after failures, next in 1s", "", ""},
		"and why":          {fleet.Connection{OpenUntil: now.Add(30 * time.Second), Err: errors.New("HTTP 503")}, "calls paused after failures, next in 30s: HTTP 503", "", ""},
		"its time is over": {fleet.Connection{OpenUntil: now}, "", "", ""},
	} {
		r := views.ConnectionRow{Connection: tc.c, Now: now}
		assert.Equal(t, []string{tc.breaker, tc.clock, tc.latency}, []string{r.BreakerText(), r.ClockText(), r.LatencyText()}, name)
	}
}
