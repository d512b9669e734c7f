package cleanup_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// where gives a rule only this condition.
func (s *scene) where(t *testing.T, text string) *scene {
	t.Helper()
	w, err := selector.ParseWhere(text)
	require.NoError(t, err)
	s.rule.Selector = selector.Selector{Where: w}
	return s
}

// TestAConditionSelectsOnlyWhatIsTrue: unknown never selects, nor does its opposite, and no
// condition lifts a protection.
func TestAConditionSelectsOnlyWhatIsTrue(t *testing.T) {
	t.Parallel()
	quiet := func(*fake.Seed) {}
	for name, tc := range map[string]struct {
		where  string
		change func(*fake.Seed)
		want   cleanup.KeepReason
	}{
		"true by the record":            {"age_seconds > 10m", quiet, cleanup.KeepNone},
		"false by the record":           {"age_seconds > 10d", quiet, cleanup.KeepNotSelected},
		"not reported":                  {`template == "x"`, quiet, cleanup.KeepUnknown},
		"not of what is not reported":   {`not (template == "x")`, quiet, cleanup.KeepUnknown},
		"asked for what is missing":     {"template == nil", quiet, cleanup.KeepNone},
		"true by a look":                {"cpu_percent >= 99%", use(100), cleanup.KeepNone},
		"false by a look":               {"cpu_percent < 1%", use(100), cleanup.KeepNotSelected},
		"a figure that no look tells":   {"operations > 0", use(100), cleanup.KeepUnknown},
		"and its opposite":              {"operations == 0 or not (operations > 0)", use(100), cleanup.KeepUnknown},
		"true, and it is active":        {"cpu_percent >= 1%", use(30), cleanup.KeepAlive},
		"nil is no word for not looked": {"cpu_percent == nil", use(100), cleanup.KeepNotSelected},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			assert.Equal(t, tc.want, oneOld(fake.Options{}, tc.change).where(t, tc.where).ground(t))
		})
	}
}

// TestALookThatFailsSelectsNothing: neither a condition nor the question whether the value is
// missing.
func TestALookThatFailsSelectsNothing(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"cpu_percent >= 1%", "cpu_percent == nil", "not (cpu_percent < 1%)"} {
		synctest.Test(t, func(t *testing.T) {
			s := oneOld(fake.Options{}, use(100)).where(t, where)
			s.rule.IgnoreActivity = true
			s.p.Break(fake.Fault{Op: fake.OpUsage, Err: fault.New(fault.KindUnavailable, "503")})
			assert.Equal(t, cleanup.KeepUnknown, s.ground(t), where)
			assert.Equal(t, map[string]int{"cpu_percent is unknown: the look failed (unavailable)": 1}, s.look(t).UnknownMatches())
		})
	}
}

// TestAConditionIsJudgedAgainJustBeforeTheEnd: by the record and, where it uses figures, by a new
// look.
func TestAConditionIsJudgedAgainJustBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		later float64
		want  sandbox.Outcome
	}{
		"it is as before":       {100, sandbox.OutcomeVerified},
		"it has calmed by then": {40, sandbox.OutcomeChanged},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var later atomic.Bool
			s := oneOld(fake.Options{}, func(seed *fake.Seed) {
				seed.Usage = func(at time.Time) sandbox.Usage {
					percent := 100.0
					if later.Load() {
						percent = tc.later
					}
					return sandbox.Usage{At: at, CPUPercent: &percent, Source: "metrics"}
				}
			}).where(t, "cpu_percent >= 99%")
			s.rule.IgnoreActivity = true
			targets := s.look(t).Targets()
			require.Len(t, targets, 1)
			later.Store(true)
			got := s.end(t, targets)
			assert.Equal(t, tc.want, got.Outcome, got.Reason)
			if tc.want == sandbox.OutcomeChanged {
				assert.Contains(t, got.Reason, "cpu_percent >= 99%: 40% >= 99% false")
				assert.Zero(t, s.asked())
			}
		})
	}
}

// TestAPlanKeepsItsCondition: as text that is compiled again, and refused where it is invalid.
func TestAPlanKeepsItsCondition(t *testing.T) {
	t.Parallel()
	w, err := selector.ParseWhere("age_seconds > 10m and not stuck")
	require.NoError(t, err)
	text, err := json.Marshal(cleanup.Rule{Selector: selector.Selector{Where: w}})
	require.NoError(t, err)
	var read cleanup.Rule
	require.NoError(t, json.Unmarshal(text, &read))
	assert.True(t, read.Chooses())
	assert.Equal(t, w.String(), read.Selector.Where.String())

	var plain cleanup.Rule
	require.NoError(t, json.Unmarshal([]byte(`{"selector":{"older_than_ns":1}}`), &plain))
	assert.True(t, plain.Selector.Where.IsZero())
	for _, broken := range []string{`{"selector":{"where":""}}`, `{"selector":{"where":"agee > 1"}}`, `{"selector":{"where":{}}}`} {
		require.Error(t, json.Unmarshal([]byte(broken), &read), broken)
	}
}
