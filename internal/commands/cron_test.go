package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/cron"
	"sbx/internal/journal"
	"sbx/internal/runs"
)

// cronBench runs cron verbs for the operator's file.
func cronBench(t *testing.T, yaml string) *bench {
	t.Helper()
	b := newBench().configure(t, yaml)
	b.adjust = func(d *Deps) {
		d.Process.UID = 1000
		d.Program = func() (string, error) { return "/opt/my tools/sbx", nil }
		in := d.Input
		d.Input = func() config.Input { // as the composition root does it
			i := in()
			i.Flags = map[string]string{}
			if len(d.Globals.Providers) > 0 {
				i.Flags["provider"] = strings.Join(d.Globals.Providers, ",")
			}
			return i
		}
		d.Config = func() (*config.Config, error) { return config.Load(t.Context(), d.Input()) }
	}
	b.env = []string{"SBX_STATE_DIR=/var/lib/sbx"}
	return b
}

func TestCronPrintGoldens(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "providers: {box: {type: local}}\nproduction: [box]\nnotify: {slack_env: MY_SLACK}\n")
	r := b.run(t, "cron print --production box --textfile /var/lib/node_exporter/sbx-{layer}.prom")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Empty(t, r.stderr)
	golden(t, "cron", strings.ReplaceAll(r.stdout, b.home, "HOME"))
	r = b.run(t, "cron print --systemd --layer reconcile --check-only")
	require.Equal(t, 0, r.code, r.stderr)
	golden(t, "cron-systemd", strings.ReplaceAll(r.stdout, b.home, "HOME"))
}

// TestCronPrintActsInProductionWhenAsked: the lines of a production profile are comments with the reason, those of
// the others act in these alone, and a check needs no leave.
func TestCronPrintActsInProductionWhenAsked(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "providers: {box: {type: local}, live: {type: fake}}\nuse: [box, live]\nproduction: [live]\n")
	lines := func(line string) (act, comment []string) {
		r := b.run(t, line)
		require.Equal(t, 0, r.code, r.stderr)
		for l := range strings.SplitSeq(r.stdout, "\n") {
			switch {
			case strings.HasPrefix(l, "#") && strings.Contains(l, "/sbx' "):
				comment = append(comment, l)
			case strings.Contains(l, "/sbx' "):
				act = append(act, l)
			}
		}
		return act, comment
	}
	act, comment := lines("cron print --layer stuck --layer reconcile")
	require.Len(t, act, 2)
	require.Len(t, comment, 2)
	for i := range act {
		assert.Contains(t, act[i], "--provider box --lock-timeout")
		assert.NotContains(t, act[i], "live")
		assert.Contains(t, comment[i], "--provider live --production live")
	}
	assert.Contains(t, b.run(t, "cron print").stdout, "# No line acts in live: that is production, and --production was not asked for. To have it written:\n#   /opt/my tools/sbx cron print --production live\n")
	assert.NotContains(t, b.run(t, "cron print --systemd").stdout, "--production live --lock")
	assert.Contains(t, b.run(t, "cron print --systemd").stdout, "# No line acts in live")
	r := b.run(t, "cron print -o json")
	assert.NotContains(t, r.stdout, "live")
	assert.Contains(t, r.stderr, "No line acts in live")

	act, comment = lines("cron print --layer stuck --production live")
	require.Len(t, act, 1)
	assert.Contains(t, act[0], "--provider box --provider live --production live")
	assert.Empty(t, comment)
	act, _ = lines("cron print --layer reconcile --check-only")
	require.Len(t, act, 1)
	assert.Contains(t, act[0], "--provider box --provider live --lock-timeout")

	r = b.run(t, "cron print --production box")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, `--production: "box" is no selected production profile`)
	assert.Contains(t, r.stderr, "those are: live")
}

func TestCronPrintJSON(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "{}\n")
	items := b.run(t, "cron print -o json").list(t, "items")
	require.Len(t, items, 4)
	assert.Equal(t, "stuck", items[0]["layer"])
	assert.Equal(t, "SBX_STATE_DIR=/var/lib/sbx '/opt/my tools/sbx' cleanup --stuck --yes --provider local --lock-timeout 2m --quiet", items[0]["command"])
	assert.Nil(t, items[0]["unit"])
	assert.Regexp(t, `^[0-4]-59/5 \* \* \* \*$`, items[0]["schedule"])
	items = b.run(t, "cron print --systemd -o json --layer usage --layer age").list(t, "items")
	require.Len(t, items, 2)
	assert.Equal(t, "sbx-age.service", items[0]["unit"])
	assert.Equal(t, "*:1/15", items[0]["schedule"])
}

// TestCronLinesHaveNoUnknownFlag: a line that nobody watches must not be a wrong
// use, once its verb is there.
func TestCronLinesHaveNoUnknownFlag(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "{}\n")
	root := NewRoot(b.deps(t))
	plan := cron.Plan{
		Binary: "/sbx", Config: "/c.yaml", Providers: []string{"a"}, Production: []string{"a"}, LockTimeout: "2m", Ping: "https://x/y", Textfile: "/x.prom",
	}
	for _, checkOnly := range []bool{false, true} {
		plan.CheckOnly = checkOnly
		for _, e := range plan.Entries() {
			cmd, rest, err := root.Find(e.Argv[1:])
			if err != nil || cmd == root {
				continue // the verb arrives with its own room
			}
			assert.NoError(t, cmd.ParseFlags(rest), "%s", e.Argv)
		}
	}
}

// TestCronFindsWhatThisRunFinds: a line acts as its author's shell did.
func TestCronFindsWhatThisRunFinds(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "{}\n")
	b.env = []string{"XDG_CONFIG_HOME=" + b.home + "/.config", "HTTPS_PROXY=http://me:s3cret@proxy.example"}
	r := b.run(t, "cron print --layer stuck --env-file cron.env")
	require.Equal(t, 0, r.code, r.stderr)
	assert.NotContains(t, r.stdout, "XDG_CONFIG_HOME", "cron's own home has that file")
	assert.NotContains(t, r.stdout, "SBX_STATE_DIR")
	assert.Contains(t, r.stdout, "# They read HTTPS_PROXY from cron.env")
	assert.NotContains(t, r.stdout, "s3cret")
}

// TestCronPrintsNoSecret, wherever it comes from.
func TestCronPrintsNoSecret(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "notify: {slack_env: MY_SLACK, ping_env: MY_PING}\n")
	b.env = append(b.env, "MY_SLACK=https://hooks.example/s3cret", "MY_PING=https://hc.example/s3cret")
	for _, line := range []string{"cron print", "cron print --systemd", "cron print -o json", "cron print -o yaml --systemd"} {
		r := b.run(t, line)
		require.Equal(t, 0, r.code, r.stderr)
		assert.NotContains(t, r.stdout+r.stderr, "s3cret", line)
	}
	assert.Contains(t, b.run(t, "cron print").stdout, "# They read MY_PING MY_SLACK from "+b.home+"/.config/sbx/cron.env,")
	assert.Contains(t, b.run(t, "cron print --ping https://hc.example/{layer}").stdout, "# They read MY_SLACK from")
}

func TestCronPrintRefuses(t *testing.T) {
	t.Parallel()
	b := cronBench(t, "{}\n")
	for line, says := range map[string]string{
		"cron print --layer stcuk":        `"stcuk" is not a layer`,
		"cron print --lock-timeout 2":     "--lock-timeout",
		"cron print --textfile /x/y.txt":  "end in .prom",
		"cron print --provider nobody":    "nobody",
		"cron print -o nagios":            "nagios",
		"cron nope":                       `unknown command "nope"`,
		"cron check --layer -":            "is not a layer",
		"cron print --columns layer,nope": "nope",
	} {
		r := b.run(t, line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stdout)
		assert.Contains(t, r.stderr, says, line)
		assert.Empty(t, r.stdout, line)
	}
	r := b.runArgs(t, "cron", "print", "--ping", "https://x/\ny")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "a cron line cannot contain")
}

// journaled is a bench over these runs.
func journaled(t *testing.T, list []cron.Run, err error) *bench {
	t.Helper()
	b := newBench().configureNothing(t)
	dir := filepath.Join(b.home, "runs")
	if err != nil {
		require.NoError(t, os.WriteFile(dir, nil, 0o600)) // no folder
	}
	for i, r := range list {
		at := r.StartedAt
		w, err := journal.Create(journal.Dir(dir), fmt.Sprintf("r-%s-%d", at.Format("20060102T150405"), i), func() time.Time { return at })
		require.NoError(t, err)
		require.NoError(t, w.Append(runs.EntryBegin, runs.Begin{Layer: string(r.Layer), CoverageGap: r.CoverageGap}))
		if at = r.EndedAt; !at.IsZero() {
			require.NoError(t, w.Append(runs.EntryConclusion, runs.Conclusion{ExitCode: r.ExitCode, Succeeded: r.Succeeded}))
		}
		require.NoError(t, w.Close())
	}
	return b
}

func goodRun(l cron.Layer, ago time.Duration) cron.Run {
	return cron.Run{Layer: l, StartedAt: noon.Add(-ago - time.Second), EndedAt: noon.Add(-ago), Succeeded: []string{"local"}}
}

func TestCronCheck(t *testing.T) {
	t.Parallel()
	well := []cron.Run{goodRun(cron.Stuck, time.Minute), goodRun(cron.Age, 5*time.Minute), goodRun(cron.Usage, 3*time.Minute), goodRun(cron.Reconcile, time.Hour)}
	late := append([]cron.Run{goodRun(cron.Stuck, time.Hour)}, well[1:]...)
	refused := append([]cron.Run{{Layer: cron.Stuck, StartedAt: noon.Add(-time.Minute), EndedAt: noon.Add(-time.Minute), ExitCode: 11}}, late...)
	looking := append(slices.Clone(well[:3]), goodRun(cron.Reconcile, time.Hour))
	looking[3].ExitCode = 10 // --check-only found something
	for name, tc := range map[string]struct {
		runs   []cron.Run
		line   string
		code   int
		stdout string
		stderr string
	}{
		"all well":        {well, "cron check", 0, "stuck\ttrue\t5m\t2026-11-20T11:58:59Z\t2026-11-20T11:59:00Z\tit last succeeded 1m ago", ""},
		"one overdue":     {late, "cron check", 10, "stuck\tfalse\t5m", "layer stuck: overdue: it last succeeded 1h ago, and should succeed every 5m"},
		"refused since":   {refused, "cron check", 10, "and ended with exit 11", "`journalctl -u sbx-stuck`"},
		"overdue unasked": {late, "cron check --layer age --layer usage", 0, "usage\ttrue", ""},
		"nothing":         {nil, "cron check", 7, "reconcile\tunknown\t1h\t\t\tno run is recorded", "sbx: error: layers stuck, age, usage, reconcile: no run is recorded\nsbx: hint: install them: `sbx cron print`; a line without"},
		"late and none":   {late[:1], "cron check", 10, "age\tunknown", "layer stuck: overdue"},
		"only looking":    {looking, "cron check", 0, "reconcile\ttrue", ""},
		"a monitor":       {well, "cron check -o nagios", 0, "SBX OK: 4 of 4 checks passed | checks=4 problems=0 warnings=0 unknown=0\n", ""},
		"a monitor, late": {late, "cron check -o nagios", 2, "SBX CRITICAL: layer stuck: overdue: it last succeeded 1h ago, and should succeed every 5m | checks=4 problems=1", ""},
		"a monitor, none": {nil, "cron check -o nagios", 3, "SBX UNKNOWN: layer stuck: no run is recorded |", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := journaled(t, tc.runs, nil).run(t, tc.line)
			assert.Equal(t, tc.code, r.code, r.stderr)
			assert.Contains(t, r.stdout, tc.stdout)
			assert.Contains(t, r.stderr, tc.stderr)
			if tc.stderr == "" {
				assert.Empty(t, r.stderr)
			}
		})
	}
}

// TestCronCheckBeforeTheFirstRun fits on eight lines: what is missing, and the one command for it. A
// document has an error for each layer.
func TestCronCheckBeforeTheFirstRun(t *testing.T) {
	t.Parallel()
	for _, tty := range []bool{true, false} {
		b := journaled(t, nil, nil)
		b.tty = tty
		r := b.run(t, "cron check")
		assert.Equal(t, 7, r.code)
		assert.LessOrEqual(t, strings.Count(r.stdout+r.stderr, "\n"), 8, r.stdout+r.stderr)
		assert.Equal(t, 1, strings.Count(r.stderr, "hint: "), r.stderr)
	}
	errs := journaled(t, nil, nil).run(t, "cron check -o json").list(t, "errors")
	require.Len(t, errs, 4)
	for i, layer := range cron.Layers() {
		assert.Equal(t, "layer "+string(layer)+": no run is recorded", errs[i]["message"])
		assert.Contains(t, errs[i]["hint"], "install them: `sbx cron print`;")
	}
	r := journaled(t, []cron.Run{goodRun(cron.Stuck, time.Minute), goodRun(cron.Age, time.Hour)}, nil).run(t, "cron check")
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stderr, "layer age: overdue")
	assert.Contains(t, r.stderr, "layers usage, reconcile: no run is recorded\nsbx: hint: install them: `sbx cron print --layer usage --layer reconcile`;")
}

func TestCronCheckJSON(t *testing.T) {
	t.Parallel()
	r := journaled(t, []cron.Run{goodRun(cron.Stuck, time.Minute), {Layer: cron.Age, StartedAt: noon.Add(-time.Hour)}}, nil).run(t, "cron check -o json")
	assert.Equal(t, 10, r.code)
	items := r.list(t, "items")
	require.Len(t, items, 4)
	assert.Equal(t, map[string]any{
		"layer": "stuck", "verdict": "true", "expected_every": "5m", "expected_every_seconds": 300.0, "exit_code": 0.0, "unowned": map[string]any{},
		"last_run": "2026-11-20T11:58:59Z", "last_success": "2026-11-20T11:59:00Z", "message": "it last succeeded 1m ago",
	}, items[0])
	assert.Equal(t, "false", items[1]["verdict"])
	assert.Nil(t, items[1]["last_success"])
	assert.Nil(t, items[1]["exit_code"])
	assert.Len(t, r.list(t, "errors"), 3)
	assert.Equal(t, true, r.object(t)["complete"])
}

// TestCronCheckThatCannotRead is no proof of anything.
func TestCronCheckThatCannotRead(t *testing.T) {
	t.Parallel()
	broken := journaled(t, nil, errors.New("no folder"))
	r := broken.run(t, "cron check")
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "the journals cannot be listed")
	assert.Contains(t, r.stderr, "sbx: hint: check that you may read")
	r = broken.run(t, "cron check -o nagios")
	assert.Equal(t, 3, r.code)
	assert.Contains(t, r.stdout, "SBX UNKNOWN: the journals cannot be listed")
}
