package cron_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cron"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// write writes a file. No fork may happen while it is open: the child would hold it
// open for writing, and a program nobody could run ("text file busy").
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		write(t, path, got, 0o600)
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// remote is a plan over services alone, local one with this machine's sandboxes.
func remote() cron.Plan {
	return cron.Plan{
		Binary: "/usr/local/bin/sbx", Config: "/etc/sbx/config.yaml", Providers: []string{"prod", "daytona"}, Production: []string{"prod"},
		EnvFile: "/etc/sbx/cron.env", Needs: []string{"DAYTONA_API_KEY", "E2B_API_KEY"}, StateDir: "/var/lib/sbx", Env: []string{"SBX_STATE_DIR=/var/lib/sbx"},
		Host: "cron-1", User: "1000", LockTimeout: "2m", Ping: "https://hc.example/key/sbx-{layer}", Textfile: "/var/lib/node_exporter/sbx-{layer}.prom",
	}
}

func local() cron.Plan {
	return cron.Plan{
		Binary: "/opt/my tools/sbx", Dir: "/srv/100% agents", Providers: []string{"local"}, Local: true,
		StateDir: "/home/ops/.local/state/sbx", Host: "cron-1", User: "1000", LockTimeout: "30s", CheckOnly: true,
	}
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	golden(t, "remote.crontab", remote().Crontab())
	golden(t, "remote.units", remote().Systemd())
	golden(t, "local.crontab", local().Crontab())
	golden(t, "local.units", local().Systemd())
}

// TestLayersNeverBeginTogether: one lock is theirs, and a provider that is asked
// by many hosts at once slows all of them down.
func TestLayersNeverBeginTogether(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	for host := range 200 {
		p := cron.Plan{Host: "host-" + strconv.Itoa(host), Binary: "/sbx"}
		taken := map[int]cron.Layer{}
		for _, e := range p.Entries() {
			for _, minute := range minutes(t, e.Schedule) {
				assert.Empty(t, taken[minute], "%s and %s at minute %d of %s", taken[minute], e.Layer, minute, p.Host)
				taken[minute] = e.Layer
			}
			assert.Len(t, minutes(t, e.Schedule), int(60*60/cron.Every(e.Layer).Seconds()), "%s: %s", e.Layer, e.Schedule)
		}
		first[p.Entries()[3].Schedule] = true
	}
	assert.Greater(t, len(first), 40, "hosts spread over the hour")
}

// minutes are those at which a schedule of ours runs.
func minutes(t *testing.T, schedule string) []int {
	t.Helper()
	field, rest, _ := strings.Cut(schedule, " ")
	require.Equal(t, "* * * *", rest)
	var first, last, step int
	if n, _ := fmt.Sscanf(field, "%d-%d/%d", &first, &last, &step); n != 3 {
		one, err := strconv.Atoi(field)
		require.NoError(t, err)
		return []int{one}
	}
	var list []int
	for m := first; m <= last; m += step {
		list = append(list, m)
	}
	return list
}

func TestWhatEachLayerRuns(t *testing.T) {
	t.Parallel()
	p := remote()
	var commands []string
	for _, e := range p.Entries() {
		commands = append(commands, strings.Join(e.Argv, " "))
	}
	tail := " --config /etc/sbx/config.yaml --provider prod --provider daytona --production prod"
	flags := func(l string) string {
		return tail + " --lock-timeout 2m --ping https://hc.example/key/sbx-" + l + " --textfile /var/lib/node_exporter/sbx-" + l + ".prom --quiet"
	}
	assert.Equal(t, []string{
		"/usr/local/bin/sbx cleanup --stuck --yes" + flags("stuck"),
		"/usr/local/bin/sbx cleanup --older-than 10m --failed-older-than 10m --include-failed --yes" + flags("age"),
		"/usr/local/bin/sbx cleanup --if-usage-above 80% --older-than 10m --include-failed --yes" + flags("usage"),
		"/usr/local/bin/sbx reconcile --fix --yes" + tail + " --lock-timeout 2m --quiet",
	}, commands)
	p.CheckOnly, p.Only = true, []cron.Layer{cron.Reconcile}
	require.Len(t, p.Entries(), 1)
	assert.Equal(t, "/usr/local/bin/sbx reconcile --check --config /etc/sbx/config.yaml --provider prod --provider daytona --lock-timeout 2m --quiet", strings.Join(p.Entries()[0].Argv, " "))
}

func TestWhatNoLineHolds(t *testing.T) {
	t.Parallel()
	p := remote()
	require.NoError(t, p.Check())
	p.Config = "/etc/a\nb"
	require.ErrorContains(t, p.Check(), "no cron line can hold")
	p = remote()
	for i := range 200 {
		p.Providers = append(p.Providers, "profile-"+strconv.Itoa(i))
	}
	require.ErrorContains(t, p.Check(), "cron takes 990")
}

func TestLayerOfARule(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for name, tc := range map[string]struct {
		rule  cron.Rule
		layer cron.Layer
		short string
	}{
		"stuck":                 {cron.Rule{Stuck: true}, cron.Stuck, ""},
		"stuck, of a label":     {cron.Rule{Stuck: true, Narrowing: []string{"--label"}}, cron.Stuck, "it selected less, by --label"},
		"age":                   {cron.Rule{OlderThan: 10 * m}, cron.Age, ""},
		"a shorter age":         {cron.Rule{OlderThan: 5 * m}, cron.Age, ""},
		"a longer age":          {cron.Rule{OlderThan: 11 * m}, cron.Age, "it selected less, by --older-than 11m"},
		"both":                  {cron.Rule{Stuck: true, OlderThan: 10 * m}, "", "it had the rule of no layer"},
		"usage":                 {cron.Rule{UsageAbove: 80, OlderThan: 10 * m}, cron.Usage, ""},
		"usage, emergency":      {cron.Rule{UsageAbove: 80, Emergency: true}, cron.Usage, ""},
		"usage, later":          {cron.Rule{UsageAbove: 95, OlderThan: 10 * m}, cron.Usage, "it selected less, by --if-usage-above 95%"},
		"usage, of old ones":    {cron.Rule{UsageAbove: 80, OlderThan: 20 * m}, cron.Usage, "it selected less, by --older-than 20m"},
		"usage, of stuck ones":  {cron.Rule{UsageAbove: 80, Stuck: true}, "", "it had the rule of no layer"},
		"usage, by a state":     {cron.Rule{UsageAbove: 80}, "", "it had the rule of no layer"},
		"emergency, whenever":   {cron.Rule{Emergency: true}, "", "it had the rule of no layer"},
		"reconcile":             {cron.Rule{Reconcile: true}, cron.Reconcile, ""},
		"reconcile that adopts": {cron.Rule{Reconcile: true, Narrowing: []string{"--adopt"}}, cron.Reconcile, "it selected less, by --adopt"},
		"nothing":               {cron.Rule{}, "", "it had the rule of no layer"},
	} {
		layer, short := tc.rule.Layer()
		assert.Equal(t, tc.layer, layer, name)
		assert.Equal(t, tc.short, short, name)
	}
}
