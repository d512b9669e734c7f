package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// TestContradictions gives each rule its edge, refused where all values are
// somebody's choice and a warning where one is a default.
func TestContradictions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file    string // below run:
		refused string // "" = not
		warned  string // "" = not
	}{
		"command equal":           {"command_timeout: 5m, attempt_timeout: 5m", "", ""},
		"command longer":          {"command_timeout: 5m1s, attempt_timeout: 5m", "command_timeout 5m1s (FILE) is longer than attempt_timeout 5m (FILE): the attempt ends first", ""},
		"command beyond default":  {"command_timeout: 601s", "", "command_timeout 10m1s (FILE) is longer than attempt_timeout 10m (default): the attempt ends first; lower the one or raise the other"},
		"attempt below default":   {"attempt_timeout: 4m", "", ""},
		"silence shorter":         {"inactivity: 59s, command_timeout: 60s", "", ""},
		"silence equal":           {"inactivity: 60s, command_timeout: 60s", "inactivity 1m (FILE) is not shorter than command_timeout 1m (FILE): inactivity would never be detected", ""},
		"silence beyond default":  {"inactivity: 5m", "", "inactivity 5m (FILE) is not shorter than command_timeout 5m (default): inactivity would never be detected; lower inactivity, or switch inactivity_timeout off"},
		"silence is default":      {"command_timeout: 20s", "", ""},
		"silence does not count":  {"inactivity: 60s, command_timeout: 60s, inactivity_timeout: false", "", ""},
		"deadline fits exactly":   {"deadline: 1827s, attempt_timeout: 10m, attempts: 3, retry_delay: 6s", "", ""},
		"deadline without waits":  {"deadline: 1826s, attempt_timeout: 10m, attempts: 3, retry_delay: 6s", "deadline 30m26s (FILE) is shorter than attempts 3 (FILE) of attempt_timeout 10m (FILE) with retry_delay 6s (FILE), which can take 30m27s", ""},
		"waits are default":       {"deadline: 1800s, attempt_timeout: 10m, attempts: 3", "", "deadline 30m (FILE) is shorter than attempts 3 (FILE) of attempt_timeout 10m (FILE) with retry_delay 6s (default), which can take 30m27s; raise deadline to 30m27s, or lower the others"},
		"deadline short anyway":   {"deadline: 1799s, attempt_timeout: 10m, attempts: 3", "deadline 29m59s (FILE) is shorter than attempts 3 (FILE) of attempt_timeout 10m (FILE), which can take 30m", ""},
		"attempts are default":    {"deadline: 20m, attempt_timeout: 10m", "", "deadline 20m (FILE) is shorter than attempts 3 (default) of attempt_timeout 10m (FILE), which can take 30m; raise deadline to 30m, or lower the others"},
		"not even one":            {"deadline: 9m, attempt_timeout: 10m", "deadline 9m (FILE) is shorter than attempt_timeout 10m (FILE), which can take 10m", ""},
		"deadline alone":          {"deadline: 5m", "", "deadline 5m (FILE) is shorter than attempt_timeout 10m (default), which can take 10m; raise deadline to 10m, or lower the others"},
		"one attempt has no wait": {"deadline: 10m, attempt_timeout: 10m, attempts: 1, retry_delay: 60s", "", ""},
		"many attempts":           {"deadline: 2h, attempts: 50", "", "deadline 2h (FILE) is shorter than attempts 50 (FILE) of attempt_timeout 10m (default), which can take 8h20m; raise deadline to 8h20m, or lower the others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user("run: {" + tc.file + "}")
			warnings, err := w.launching().Contradictions()
			if tc.refused == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
				assert.Equal(t, fault.KindUsage, fault.KindOf(err))
				assert.NotEmpty(t, fault.HintOf(err))
				assert.Equal(t, tc.refused, w.shortFile(err.Error()))
			}
			assert.Equal(t, tc.warned, w.shortFile(strings.Join(warnings, "\n")))
		})
	}
}

func (w *world) shortFile(text string) string {
	return strings.ReplaceAll(w.short(text), "DIR/home/.config/sbx/config.yaml:1", "FILE")
}

// TestContradictionsAcrossSources: it does not matter who said what, as long as
// somebody did; and all contradictions come at once.
func TestContradictionsAcrossSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("run: {deadline: 1m}")
	w.env = append(w.env, "CLAUDE_CODE_TIMEOUT=700", "SANDBOX_TIMEOUT=600", "AGENT_INACTIVITY_TIMEOUT_MS=1000")
	w.flags["inactivity"] = "800s"
	warnings, err := w.launching().Contradictions()
	require.Error(t, err)
	assert.Empty(t, warnings)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "joined faults stay one kind")
	assert.Equal(t, strings.Join([]string{
		"command_timeout 11m40s (env CLAUDE_CODE_TIMEOUT) is longer than attempt_timeout 10m (env SANDBOX_TIMEOUT): the attempt ends first",
		"deadline 1m (FILE) is shorter than attempt_timeout 10m (env SANDBOX_TIMEOUT), which can take 10m",
		"inactivity 13m20s (flag --inactivity) is not shorter than command_timeout 11m40s (env CLAUDE_CODE_TIMEOUT): inactivity would never be detected",
	}, "\n"), w.shortFile(err.Error()))
	w.flags["command-timeout"], w.flags["inactivity"], w.flags["deadline"] = "10m", "30s", "1h"
	_, err = w.launching().Contradictions()
	require.NoError(t, err, "flags settle it")
}

func TestLongestWaits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		attempts int
		delay    time.Duration
		want     time.Duration
	}{
		{1, 6 * time.Second, 0},
		{2, 6 * time.Second, 9 * time.Second},
		{3, 6 * time.Second, 27 * time.Second},
		{5, 6 * time.Second, (9 + 18 + 36 + 60) * time.Second},
		{4, time.Minute, 3 * time.Minute},
		{100, time.Second, 94500*time.Millisecond + 93*RetryCap}, // 1.5+3+6+12+24+48, then the cap
	} {
		got := Run{Attempts: tc.attempts, RetryDelay: tc.delay}.LongestWaits()
		assert.Equal(t, tc.want, got, "%d of %s", tc.attempts, tc.delay)
	}
}
