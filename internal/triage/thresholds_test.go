package triage

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func TestDefaultsAreTheRunbooks(t *testing.T) {
	t.Parallel()
	d := DefaultThresholds()
	assert.Equal(t, 5*time.Minute, d.WatchAge)        // R11
	assert.Equal(t, 10*time.Minute, d.StuckAge)       // R26
	assert.Equal(t, 5*time.Minute, d.ProvisioningAge) // R28
	assert.Equal(t, 10*time.Minute, d.EndingAge)
	assert.Equal(t, time.Minute, d.Inactivity)     // S1-13
	assert.Equal(t, 5*time.Minute, d.CleanupEvery) // R53
	assert.InDelta(t, 95, d.CPUBusy, 0)            // R45
	assert.Equal(t, 20, d.ActiveMax)               // R4
	assert.InDelta(t, 0.05, d.TimeoutRateHigh, 0)  // R3
	assert.InDelta(t, 0.02, d.TimeoutRateGood, 0)  // R128
	assert.False(t, d.AgeOnly)
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "AgeOnly" && name != "Given" {
			assert.False(t, v.Field(i).IsZero(), "%s has no default", name)
		}
	}
}

func TestScaledTouchesEveryDurationAndNothingElse(t *testing.T) {
	t.Parallel()
	before, after := reflect.ValueOf(DefaultThresholds()), reflect.ValueOf(DefaultThresholds().Scaled(0.01))
	for i := range before.NumField() {
		name, was, is := before.Type().Field(i).Name, before.Field(i).Interface(), after.Field(i).Interface()
		if d, timed := was.(time.Duration); timed {
			assert.Equal(t, d/100, is, name)
		} else {
			assert.Equal(t, was, is, name)
		}
	}
}

func TestScaledAtTheEdges(t *testing.T) {
	t.Parallel()
	d := DefaultThresholds()
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		assert.Equal(t, d, d.Scaled(factor), "%v", factor)
	}
	assert.Equal(t, time.Duration(1), d.Scaled(1e-300).StuckAge, "never 0, which would mean no limit")
	assert.Positive(t, d.Scaled(1e300).StuckAge)
}

func TestWithReplacesEveryFieldThatIsSet(t *testing.T) {
	t.Parallel()
	var full Thresholds
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Float64:
			f.SetFloat(77)
		case reflect.Int, reflect.Int64:
			f.SetInt(77)
		case reflect.Struct:
			f.Set(reflect.ValueOf(Given{true, true, true}))
		default:
			t.Fatalf("field %d of a new kind", i)
		}
	}
	assert.Equal(t, full, DefaultThresholds().With(full))
	assert.Equal(t, DefaultThresholds(), DefaultThresholds().With(Thresholds{}))
	assert.Equal(t, Given{}, DefaultThresholds().Given, "no default is configured")
}

func TestBookPrefersTheNarrowest(t *testing.T) {
	t.Parallel()
	age := func(d time.Duration) Thresholds { return Thresholds{StuckAge: d} }
	book := ThresholdBook{Default: DefaultThresholds(), Overrides: []Override{
		{Profile: "mono", AgentType: "coder", Set: age(1)},
		{AgentType: "coder", Set: age(2)},
		{Profile: "mono", Set: Thresholds{StuckAge: 3, AgeOnly: true}},
		{Profile: "twice", Set: age(4)},
		{Profile: "twice", Set: age(5)},
	}}
	for name, tc := range map[string]struct {
		profile, agent string
		want           time.Duration
		ageOnly        bool
	}{
		"both":       {"mono", "coder", 1, true},
		"agent":      {"prod", "coder", 2, false},
		"profile":    {"mono", "tester", 3, true},
		"later wins": {"twice", "", 5, false},
		"neither":    {"prod", "", 10 * time.Minute, false},
	} {
		got := book.For(sandbox.Sandbox{Provider: tc.profile, AgentType: tc.agent})
		assert.Equal(t, tc.want, got.StuckAge, name)
		assert.Equal(t, tc.ageOnly, got.AgeOnly, name)
		assert.Equal(t, min(5*time.Minute, tc.want), got.WatchAge, name)
	}
	book.Overrides = append(book.Overrides, Override{Set: age(9)})
	assert.Equal(t, time.Duration(9), book.For(sandbox.Sandbox{Provider: "prod"}).StuckAge, "without names it stands for all")
}
