package config

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
)

const operatorRun = `run: {command_timeout: 200s, retry_delay: 10s, memory: 4G, health_probe: false, image: mine, callback_url: 'https://mine.example'}
`

func TestProjectMayNarrowRuns(t *testing.T) {
	t.Parallel()
	for name, project := range map[string]string{
		"the same":   operatorRun,
		"lower":      "run: {command_timeout: 199s, attempt_timeout: 599s, deadline: 34m, inactivity: 59s, attempts: 2, keep_alive_ttl: 59m, memory: 3G}",
		"defaults":   "run: {attempt_timeout: 10m, deadline: 2100s, inactivity: 1m, attempts: 3, keep_alive_ttl: 60m}",
		"longer":     "run: {retry_delay: 11s}",
		"switch on":  "run: {health_probe: true, db_backed_stop: true}",
		"stays on":   "run: {cancellation_checks: true}",
		"stays off":  "run: {health_probe: false}",
		"other unit": "run: {command_timeout: 3m20s}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(operatorRun)
			w.project(project)
			assert.False(t, w.must().Files[1].Trusted)
		})
	}
}

func TestProjectMayNotWidenRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ project, want string }{
		"above the user":     {"command_timeout: 201s", "raise run.command_timeout above 200s, here to 201s"},
		"above the default":  {"deadline: 36m", "raise run.deadline above 35m, here to 36m"},
		"attempts":           {"attempts: 4", "raise run.attempts above 3, here to 4"},
		"keep alive":         {"keep_alive_ttl: 61m", "raise run.keep_alive_ttl above 1h, here to 61m"},
		"inactivity":         {"inactivity: 61s", "raise run.inactivity above 60s, here to 61s"},
		"attempt":            {"attempt_timeout: 11m", "raise run.attempt_timeout above 600s, here to 11m"},
		"hurry":              {"retry_delay: 9s", "lower run.retry_delay below 10s, here to 9s"},
		"memory":             {"memory: 5G", "raise run.memory above 4G, here to 5G"},
		"where nobody chose": {"cpu: 1", "set run.cpu, here to 1"},
		"disk":               {"disk: 1G", "set run.disk, here to 1G"},
		"image":              {"image: theirs", "set run.image, here to theirs"},
		"snapshot":           {"snapshot: theirs", "set run.snapshot, here to theirs"},
		"address":            {"callback_url: 'https://theirs.example/s3cret'", "set run.callback_url"},
		"stop":               {"db_backed_stop: false", "switch run.db_backed_stop off"},
		"checks":             {"cancellation_checks: false", "switch run.cancellation_checks off"},
		"silence":            {"inactivity_timeout: false", "switch run.inactivity_timeout off"},
		"timeout":            {"authoritative_timeout: false", "switch run.authoritative_timeout off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.user(operatorRun)
			path := w.project("run:\n  " + tc.project)
			got := w.fails()
			assert.Regexp(t, `^DIR/home/project/\.sbx\.yaml:2:\d+: a project file may not `, got)
			assert.Contains(t, got, "a project file may not "+tc.want)
			assert.NotContains(t, got, "s3cret")
			_, err := w.load()
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			trust(t, w, path)
			assert.True(t, w.must().Files[1].Trusted)
		})
	}
}

// TestProbeMayNotBeSwitchedOffWhereItIsOn is the switch that operatorRun turned off.
func TestProbeMayNotBeSwitchedOffWhereItIsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("run: {health_probe: false}")
	assert.Contains(t, w.fails(), "a project file may not switch run.health_probe off")
}

// TestEnvironmentIsTheOperatorsOwn: a variable may raise what a project lowered.
func TestEnvironmentIsTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.project("run: {attempt_timeout: 100s}")
	w.env = append(w.env, "SANDBOX_TIMEOUT=900", "ENABLE_HEALTH_PROBE=0")
	r := w.launching()
	assert.Equal(t, "15m0s", r.AttemptTimeout.String())
	assert.False(t, r.Switches.HealthProbe)
}
