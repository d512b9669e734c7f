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
		Binary: "/usr/local/bin/sbx", Config: "/etc/sbx/config.yaml", Providers: []string{"prod", "daytona"}, Measured: []string{"prod", "daytona"}, Production: []string{"prod"},
		EnvFile: "/etc/sbx/cron.env", Needs: []string{"DAYTONA_API_KEY", "E2B_API_KEY"}, StateDir: "/var/lib/sbx", Env: []string{"SBX_STATE_DIR=/var/lib/sbx"},
		Host: "cron-1", User: "1000", LockTimeout: "2m", Ping: "https://hc.example/key/sbx-{layer}", Textfile: "/var/lib/node_exporter/sbx-{layer}.prom",
	}
}

func local() cron.Plan {
	return cron.Plan{
		Binary: "/opt/my tools/sbx", Providers: []string{"local"}, Measured: []string{"local"}, HostProcesses: "local",
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
		p := cron.Plan{Host: "host-" + strconv.Itoa(host), Binary: "/sbx", MayEmergency: []string{"a"}, Emergency: true}
		taken := map[int]cron.Layer{}
		for _, e := range p.Entries() {
			for _, minute := range minutes(t, e.Schedule) {
				assert.Empty(t, taken[minute], "%s and %s at minute %d of %s", taken[minute], e.Unit, minute, p.Host)
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
		"/usr/local/bin/sbx reconcile --fix --yes" + flags("reconcile"),
	}, commands)
	p.CheckOnly, p.Only = true, []cron.Layer{cron.Reconcile}
	require.Len(t, p.Entries(), 1)
	assert.Equal(t, "/usr/local/bin/sbx reconcile --check --config /etc/sbx/config.yaml --provider prod --provider daytona --lock-timeout 2m --ping https://hc.example/key/sbx-reconcile --textfile /var/lib/node_exporter/sbx-reconcile.prom --quiet", strings.Join(p.Entries()[0].Argv, " "))
}

func TestWhatNoLineHolds(t *testing.T) {
	t.Parallel()
	p := remote()
	require.NoError(t, p.Check())
	p.Config = "/etc/a\nb"
	require.ErrorContains(t, p.Check(), "a cron line cannot contain")
	p = remote()
	for i := range 200 {
		p.Providers = append(p.Providers, "profile-"+strconv.Itoa(i))
	}
	require.ErrorContains(t, p.Check(), "limit of cron is 990")
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
		"stuck, of a label":     {cron.Rule{Stuck: true, Narrowing: []string{"--label"}}, cron.Stuck, "it covers only a part of its layer: --label"},
		"age":                   {cron.Rule{OlderThan: 10 * m}, cron.Age, ""},
		"a shorter age":         {cron.Rule{OlderThan: 5 * m}, cron.Age, ""},
		"a longer age":          {cron.Rule{OlderThan: 11 * m}, cron.Age, "it covers only a part of its layer: --older-than 11m"},
		"both":                  {cron.Rule{Stuck: true, OlderThan: 10 * m}, "", "its rule is not the rule of a layer"},
		"usage":                 {cron.Rule{UsageAbove: 80, OlderThan: 10 * m}, cron.Usage, ""},
		"usage, emergency":      {cron.Rule{UsageAbove: 80, Emergency: true}, cron.Usage, ""},
		"usage, later":          {cron.Rule{UsageAbove: 95, OlderThan: 10 * m}, cron.Usage, "it covers only a part of its layer: --if-usage-above 95%"},
		"usage, of old ones":    {cron.Rule{UsageAbove: 80, OlderThan: 20 * m}, cron.Usage, "it covers only a part of its layer: --older-than 20m"},
		"usage, of stuck ones":  {cron.Rule{UsageAbove: 80, Stuck: true}, "", "its rule is not the rule of a layer"},
		"usage, by a state":     {cron.Rule{UsageAbove: 80}, "", "its rule is not the rule of a layer"},
		"emergency, whenever":   {cron.Rule{Emergency: true}, "", "its rule is not the rule of a layer"},
		"reconcile":             {cron.Rule{Reconcile: true}, cron.Reconcile, ""},
		"reconcile that adopts": {cron.Rule{Reconcile: true, Narrowing: []string{"--adopt"}}, cron.Reconcile, "it covers only a part of its layer: --adopt"},
		"nothing":               {cron.Rule{}, "", "its rule is not the rule of a layer"},
	} {
		layer, short := tc.rule.Layer()
		assert.Equal(t, tc.layer, layer, name)
		assert.Equal(t, tc.short, short, name)
	}
}

// TestTheUsageLayerIsAboutWhatCanBeMeasured, and says what it leaves out.
func TestTheUsageLayerIsAboutWhatCanBeMeasured(t *testing.T) {
	t.Parallel()
	layers := func(p cron.Plan) (names []string, usage cron.Entry) {
		for _, e := range p.Entries() {
			names = append(names, e.Unit)
			if e.Layer == cron.Usage {
				usage = e
			}
		}
		return names, usage
	}
	all := []string{"sbx-stuck.service", "sbx-age.service", "sbx-usage.service", "sbx-reconcile.service"}
	const leaves = "# Layer usage skips prod: its quota use is unknown. Set\n# limits.max_sandboxes"

	p := remote()
	names, _ := layers(p)
	assert.Equal(t, all, names)
	assert.NotContains(t, p.Crontab(), "Layer usage skips")

	p.Measured = []string{"daytona"}
	names, usage := layers(p)
	assert.Equal(t, all, names)
	assert.Contains(t, strings.Join(usage.Argv, " "), " --provider daytona --lock-timeout")
	assert.NotContains(t, strings.Join(usage.Argv, " "), "prod", "nor as production")
	assert.Contains(t, p.Crontab(), leaves)
	assert.Contains(t, p.Systemd(), leaves)

	p.Measured = nil
	names, _ = layers(p)
	assert.Equal(t, []string{"sbx-stuck.service", "sbx-age.service", "sbx-reconcile.service"}, names, "a line that is exit 9 every five minutes helps nobody")
	assert.NotContains(t, p.Crontab(), "--if-usage-above")
	assert.Contains(t, p.Crontab(), "# Layer usage skips prod, daytona:")
	p.Only = []cron.Layer{cron.Stuck}
	assert.NotContains(t, p.Crontab(), "Layer usage")
}

// TestAnEmergencyIsOffered (R135), and switched on by a word.
func TestAnEmergencyIsOffered(t *testing.T) {
	t.Parallel()
	p := remote()
	p.MayEmergency = []string{"daytona"}
	const line = "cleanup --emergency --if-usage-above 80%s --yes --config /etc/sbx/config.yaml --provider daytona --production daytona --lock-timeout 2m --ping https://hc.example/key/sbx-usage-emergency --textfile /var/lib/node_exporter/sbx-usage-emergency.prom --quiet"
	assert.Len(t, p.Entries(), 4)
	assert.Contains(t, p.Crontab(), "# It also terminates active sandboxes. To enable it, remove the # of the next line.\n#")
	assert.Contains(t, p.Crontab(), fmt.Sprintf(line, `\%`))
	assert.NotContains(t, p.Systemd(), "--emergency")
	p.Emergency = true
	require.Len(t, p.Entries(), 5)
	e := p.Entries()[4]
	assert.Equal(t, cron.Usage, e.Layer)
	assert.Equal(t, "sbx-usage-emergency.service", e.Unit)
	assert.Equal(t, "/usr/local/bin/sbx "+fmt.Sprintf(line, "%"), strings.Join(e.Argv, " "))
	assert.NotContains(t, p.Crontab(), "It also terminates active sandboxes")
	assert.Contains(t, p.Systemd(), "# /etc/systemd/system/sbx-usage-emergency.timer")
	p.Only = []cron.Layer{cron.Age}
	assert.Len(t, p.Entries(), 1)
}
