package views_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/output"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func TestAgesByNearestRank(t *testing.T) {
	t.Parallel()
	var twenty []time.Duration
	for i := 20; i > 0; i-- {
		twenty = append(twenty, time.Duration(i)*time.Second)
	}
	for name, tc := range map[string]struct {
		ages               []time.Duration
		low, mid, high, up *float64
	}{
		"none":   {nil, nil, nil, nil, nil},
		"one":    {twenty[:1], new(20.0), new(20.0), new(20.0), new(20.0)},
		"two":    {twenty[18:], new(1.0), new(1.0), new(2.0), new(2.0)},
		"twenty": {twenty, new(1.0), new(10.0), new(19.0), new(20.0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := views.StatsRow{Ages: tc.ages}
			assert.Equal(t, []*float64{tc.low, tc.mid, tc.high, tc.up}, []*float64{r.Age(0), r.Age(50), r.Age(95), r.Age(100)})
		})
	}
}

func TestFiguresBesideTheirLimits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		active, stuck, ended, late      *int64
		activeText, stuckText, rateText string
		activeTone, stuckTone, rateTone output.Tone
		oldest                          time.Duration
		ageTone                         output.Tone
	}{
		"nothing is known": {activeText: "-", stuckText: "-", rateText: "-"},
		"at every limit": {
			active: new(int64(20)), stuck: new(int64(0)), ended: new(int64(100)), late: new(int64(5)), oldest: 10 * time.Minute,
			activeText: "20 of 20", stuckText: "0 over 10m", rateText: "5% of 5% degraded", rateTone: output.Warn,
		},
		"over every limit": {
			active: new(int64(21)), stuck: new(int64(1)), ended: new(int64(100)), late: new(int64(6)), oldest: 10*time.Minute + 1,
			activeText: "21 of 20 ALERT", stuckText: "1 over 10m", rateText: "6% of 5% ALERT",
			activeTone: output.Bad, stuckTone: output.Bad, rateTone: output.Bad, ageTone: output.Warn,
		},
		"healthy": {
			active: new(int64(0)), stuck: new(int64(0)), ended: new(int64(1000)), late: new(int64(19)),
			activeText: "0 of 20", stuckText: "0 over 10m", rateText: "1.9% of 5%", rateTone: output.Good,
		},
		"none has ended":     {active: new(int64(1)), stuck: new(int64(0)), ended: new(int64(0)), late: new(int64(0)), activeText: "1 of 20", stuckText: "0 over 10m", rateText: "-"},
		"contradicts itself": {active: new(int64(1)), stuck: new(int64(0)), ended: new(int64(1)), late: new(int64(2)), activeText: "1 of 20", stuckText: "0 over 10m", rateText: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := views.StatsRow{Limits: triage.DefaultThresholds(), Stuck: tc.stuck, Counts: triage.FleetSignals{Active: tc.active, TotalDestroyed: tc.ended, TimedOut: tc.late}}
			if tc.oldest > 0 {
				r.Ages = []time.Duration{time.Second, tc.oldest}
			}
			assert.Equal(t, []string{tc.activeText, tc.stuckText, tc.rateText}, []string{r.ActiveText(), r.StuckText(), r.RateText()})
			assert.Equal(t, []output.Tone{tc.activeTone, tc.stuckTone, tc.rateTone, tc.ageTone}, []output.Tone{r.ActiveTone(), r.StuckTone(), r.RateTone(), r.AgeTone()})
		})
	}
}
