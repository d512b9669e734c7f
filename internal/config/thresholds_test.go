package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestThresholds: those of all profiles, of one, of an agent type, and of both.
func TestThresholds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, triage.DefaultThresholds(), w.must().Thresholds.For(sandbox.Sandbox{}), "without configuration")
	w.user("thresholds:\n  active: 30\n  escalate: {active: 80, for: 1h}\n  timeout_rate_high: 7%\n  agent_types: {Long: {stuck_age: 40m}}\n" +
		"providers:\n  prod: {type: cloud, token: x, thresholds: {stuck_age: 20m, watch_age: 6m, agent_types: {long: {stuck_age: 50m}}}}\n")
	c := w.must()
	of := func(profile, agentType string) triage.Thresholds {
		return c.Thresholds.For(sandbox.Sandbox{Provider: profile, AgentType: agentType})
	}
	all := of("other", "")
	assert.Equal(t, 30, all.ActiveMax)
	assert.Equal(t, 80, all.EscalateActive)
	assert.Equal(t, time.Hour, all.EscalateFor)
	assert.InDelta(t, 0.07, all.TimeoutRateHigh, 1e-9)
	assert.InDelta(t, 0.02, all.TimeoutRateGood, 1e-9, "the default")
	assert.Equal(t, 10*time.Minute, all.StuckAge)
	assert.Equal(t, 40*time.Minute, of("other", "long").StuckAge)
	assert.Equal(t, 20*time.Minute, of("prod", "").StuckAge)
	assert.Equal(t, 50*time.Minute, of("prod", "LONG").StuckAge)
	assert.Equal(t, 6*time.Minute, of("prod", "long").WatchAge)

	assert.Equal(t, "30 <- DIR/home/.config/sbx/config.yaml:2", w.origin(c, "thresholds.active"))
	assert.Equal(t, "1h <- DIR/home/.config/sbx/config.yaml:3", w.origin(c, "thresholds.escalate.for"))
	assert.Equal(t, "2% <- default", w.origin(c, "thresholds.timeout_rate_good"))
	assert.Equal(t, "50m <- DIR/home/.config/sbx/config.yaml:7", w.origin(c, "providers.prod.thresholds.agent_types.long.stuck_age"))
	assert.Equal(t, "no such key", w.origin(c, "providers.prod.thresholds.active"))
}

// TestStuckAfterIsAThreshold: the older key sets the same limit, and both together are a mistake.
func TestStuckAfterIsAThreshold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("providers:\n  prod: {type: cloud, token: x, activity: age-only, stuck_after: {Long: 15m, default: 11m}}\n")
	book := w.must().Thresholds
	assert.Equal(t, 15*time.Minute, book.For(sandbox.Sandbox{Provider: "prod", AgentType: "long"}).StuckAge)
	assert.Equal(t, 11*time.Minute, book.For(sandbox.Sandbox{Provider: "prod"}).StuckAge)
	assert.True(t, book.For(sandbox.Sandbox{Provider: "prod"}).AgeOnly)
	w.user("providers:\n  prod: {type: cloud, token: x, stuck_after: {Long: 15m}, thresholds: {agent_types: {long: {stuck_age: 16m}}}}\n")
	assert.Contains(t, w.fails(), "providers.prod.thresholds.agent_types.long.stuck_age is set already by stuck_after of profile prod")
}

// TestThresholdsThatContradict each other.
func TestThresholdsThatContradict(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"thresholds: {watch_age: 20m}\n":                        "thresholds: watch_age (20m) is above stuck_age (10m): a sandbox would be stuck before it is worth a look",
		"thresholds: {watch_age: 9m, stuck_age: 8m}\n":          "thresholds: watch_age (9m) is above stuck_age (8m)",
		"thresholds: {busy_silence: 50s}\n":                     "thresholds: inactivity (1m) is above busy_silence (50s): a busy sandbox would be stuck before an idle one",
		"thresholds: {agent_types: {long: {watch_age: 11m}}}\n": "thresholds: watch_age (11m) is above stuck_age (10m)",
		"thresholds: {timeout_rate_high: 100%}\n":               "thresholds: timeout_rate_high is 100%: no rate is above it",
		"thresholds: {active: 60}\n":                            "thresholds: active (60) is above escalate.active (50)",
		"thresholds: {timeout_rate_good: 9%}\n":                 "thresholds: timeout_rate_good (9%) is above timeout_rate_high (5%)",
	} {
		w := newWorld(t)
		w.user(text)
		assert.Contains(t, w.fails(), says, text)
	}
}

// TestOddThresholds are accepted, and told by doctor and `config explain`. A limit that nobody has set
// follows the one that somebody has.
func TestOddThresholds(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"thresholds: {inactivity: 12m}\n":                    "FILE: thresholds: inactivity (12m) is above stuck_age (10m): every sandbox that was silent for so long is older than stuck_age, which decides nothing: raise it",
		"thresholds: {sustained: 1h}\n":                      "FILE: thresholds: sustained (1h) is above escalate.for (30m): the escalation comes before the alert",
		"thresholds: {escalate: {for: 4m}}\n":                "FILE: thresholds: sustained (5m) is above escalate.for (4m): the escalation comes before the alert",
		"thresholds: {quota_near: 100%}\n":                   "FILE: thresholds: quota_near is 100%: it alerts only when the quota is used up",
		"thresholds: {stuck_age: 3m}\n":                      "",
		"thresholds: {inactivity: 6m}\n":                     "",
		"thresholds: {inactivity: 6m, busy_silence: 6m}\n":   "",
		"thresholds: {watch_age: 10m}\n":                     "",
		"thresholds: {agent_types: {a: {stuck_age: 30m}}}\n": "",
	} {
		w := newWorld(t)
		w.user(text)
		c := w.must()
		assert.Equal(t, says, w.shortFile(strings.Join(c.Remarks, "\n")), text)
		limits := c.Thresholds.For(sandbox.Sandbox{})
		assert.LessOrEqual(t, limits.WatchAge, limits.StuckAge, text)
		assert.GreaterOrEqual(t, limits.BusySilence, limits.Inactivity, text)
	}
}

// TestEveryThresholdHasAKey, but those that say how figures are read.
func TestEveryThresholdHasAKey(t *testing.T) {
	t.Parallel()
	set := triage.Thresholds{AgeOnly: true, CPUBusy: 1, CPUIdle: 1, OperationsHigh: 1, MemorySlope: 1, MemoryGrowth: 1, MemoryNear: 1, RepeatLines: 1, Given: triage.Given{Active: true, Normal: true, Escalate: true}}
	sample := map[providers.OptionKind]string{providers.OptionCount: "7", providers.OptionDuration: "7m", kindPercent: "7%"}
	for _, m := range thresholdSettings() {
		m.put(&set, sample[m.kind])
		assert.Equal(t, sample[m.kind], m.text(&set), m.name)
	}
	for i := range reflect.TypeFor[triage.Thresholds]().NumField() {
		assert.False(t, reflect.ValueOf(set).Field(i).IsZero(), reflect.TypeFor[triage.Thresholds]().Field(i).Name)
	}
	assert.Equal(t, set, triage.DefaultThresholds().With(set), "With keeps what is set")
}
