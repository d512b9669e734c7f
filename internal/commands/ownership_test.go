package commands

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// switchedOn is a bench over the profile "cloud", which its variable has switched on,
// with this many silent sandboxes that are an hour old and carry these labels.
func switchedOn(t *testing.T, n int, labels map[string]string) (*bench, *fake.Provider) {
	t.Helper()
	p := fake.New(fake.Options{Name: "cloud", Now: atNoon})
	seeds := quietHerd("clod", n)
	for i := range seeds {
		seeds[i].Sandbox.Labels, seeds[i].Sandbox.TaskID = labels, ""
	}
	p.Add(seeds...)
	b := newBench(p).configureNothing(t)
	b.env = []string{"CLOUD_KEY=s3cret", "SBX_PROVIDER=cloud"}
	b.adjust = func(d *Deps) {
		d.Types = []providers.Type{hostType(), {Name: "cloud", Help: "a cloud", SwitchedOn: []string{"CLOUD_KEY"}, Options: []providers.Option{{Name: "token", Env: "CLOUD_KEY", Secret: true, Kind: providers.OptionText}}}}
		in := d.Input
		d.Input = func() config.Input {
			i := in()
			i.Types = d.Types
			i.Flags = map[string]string{}
			maps.Copy(i.Flags, d.Globals.Settings)
			if len(d.Globals.Providers) > 0 {
				i.Flags["provider"] = strings.Join(d.Globals.Providers, ",")
			}
			return i
		}
		d.Config = func() (*config.Config, error) { return config.Load(t.Context(), d.Input()) }
	}
	return b, p
}

// TestWhatNobodyOwnsIsSaid, everywhere where somebody would look.
func TestWhatNobodyOwnsIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := switchedOn(t, 4, nil)
		const own = "`sbx config own --provider cloud --all` writes `owned: all` (every sandbox there is yours), --label KEY=VALUE `owned: {labels: {KEY: VALUE}}` (those with the label)"

		r := b.run(t, "cron check --layer stuck")
		assert.Equal(t, 7, r.code)
		assert.Contains(t, r.stdout, "no run is recorded; of cloud it would terminate only sandboxes with the label sbx/owner")
		assert.Contains(t, r.stderr, own, "before the first run")

		r = b.run(t, "cleanup --stuck")
		assert.Equal(t, 0, r.code)
		assert.Contains(t, r.stdout, "Would be terminated: 0")
		assert.Contains(t, r.stdout, "0 of 4 can be ended: none of them is yours (cloud 4).")
		assert.Contains(t, r.stdout, "`sbx config own --provider cloud --all`")
		plan, _ := b.run(t, "cleanup --stuck -o json").object(t)["plan"].(map[string]any)
		assert.Equal(t, map[string]any{"cloud": 4.0}, plan["unowned"])

		file := filepath.Join(b.home, "sbx.prom")
		r = b.run(t, "cleanup --stuck --yes -q --textfile "+file)
		assert.Equal(t, 11, r.code, "a cron line that ends nothing is not green")
		assert.Equal(t, "sbx: error: 4 stuck sandboxes were skipped because nobody owns them (cloud 4): cloud/clod0000, cloud/clod0001, cloud/clod0002, cloud/clod0003\nsbx: hint: "+own+"\n", r.stderr)
		assert.Empty(t, p.Calls(fake.OpTerminate))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), `sbx_cleanup_kept{layer="stuck",provider="cloud",reason="not_owned"} 4`)
		assert.Contains(t, string(text), `sbx_cleanup_kept{layer="stuck",provider="cloud",reason="alive"} 0`)
		acted := b.run(t, "cleanup --stuck --yes -o json").object(t)
		assert.Equal(t, map[string]any{"cloud": 4.0}, acted["unowned"])
		assert.Equal(t, map[string]any{"not_owned": 4.0}, acted["kept"])
		errs, _ := acted["errors"].([]any)
		require.Len(t, errs, 1)
		first, _ := errs[0].(map[string]any)
		assert.Equal(t, "refused", first["kind"])

		r = b.run(t, "cron check --layer stuck")
		assert.Equal(t, 10, r.code)
		assert.Contains(t, r.stdout, "it skipped 4 stuck ones because nobody owns them (cloud 4); it has never succeeded; it last ran 0s ago and ended with exit 11\n")
		assert.Contains(t, r.stderr, own)
		r = b.run(t, "cron check --layer stuck -o nagios")
		assert.Equal(t, 2, r.code)
		assert.Contains(t, r.stdout, "SBX CRITICAL: layer stuck: it skipped 4 stuck ones because nobody owns them (cloud 4)")
		assert.Equal(t, map[string]any{"cloud": 4.0}, b.run(t, "cron check --layer stuck -o json").list(t, "items")[0]["unowned"])
		r = b.run(t, "cleanup status")
		assert.Equal(t, 10, r.code)
		assert.Contains(t, r.stderr, own)
	})
}

// TestDoctorSaysWhatCleanupLeaves once a run has left something, and before that what
// it would end.
func TestDoctorSaysWhatCleanupLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := switchedOn(t, 4, nil)
		find := func() map[string]any {
			for _, item := range b.run(t, "doctor -o json").list(t, "items") {
				if item["check"] == "ownership" {
					return item
				}
			}
			t.Fatal("doctor has no row about ownership")
			return nil
		}
		row := find()
		assert.Equal(t, "cloud", row["provider"])
		assert.Equal(t, "unknown", row["verdict"])
		assert.Contains(t, row["message"], "cleanup terminates only what sbx created (label sbx/owner)")
		require.Equal(t, 11, b.run(t, "cleanup --stuck --yes").code)
		row = find()
		assert.Equal(t, "false", row["verdict"])
		assert.Contains(t, row["message"], "the last cleanup skipped 4 that its rule selects because nobody owns them")
		assert.Contains(t, row["hint"], "`sbx config own --provider cloud --all`")
	})
}

// TestWhatIsKeptForOtherReasonsIsNotUnowned: a decision about ownership would change
// nothing about it.
func TestWhatIsKeptForOtherReasonsIsNotUnowned(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels map[string]string
		line   string
		ended  int
	}{
		"ours":        {map[string]string{sandbox.LabelOwner: "me"}, "cleanup --stuck --yes --max-fraction 100%", 4},
		"kept":        {map[string]string{sandbox.LabelKeep: "true"}, "cleanup --stuck --yes", 0},
		"too young":   {nil, "cleanup --older-than 2h --yes", 0},
		"unowned too": {nil, "cleanup --stuck --yes --unowned --max-fraction 100%", 4},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := switchedOn(t, 4, tc.labels)
			r := b.run(t, tc.line)
			assert.Equal(t, 0, r.code, r.stderr)
			assert.NotContains(t, r.stderr, "nobody owns them")
			assert.Len(t, p.Calls(fake.OpTerminate), tc.ended)
		})
	}
}

// TestADecisionIsADecision: what a profile's own rule leaves to others is no trouble.
func TestADecisionIsADecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := switchedOn(t, 4, nil)
		require.Equal(t, 11, b.run(t, "cleanup --stuck --yes -q").code)
		require.Equal(t, 10, b.run(t, "cron check --layer stuck").code)
		file := filepath.Join(b.home, ".config", "sbx", "config.yaml")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte("providers:\n  cloud: {type: cloud, owned: {labels: {team: agents}}}\n"), 0o600))
		assert.Equal(t, 10, b.run(t, "cron check --layer stuck").code, "it was decided since, and the run that left them proves nothing")
		r := b.run(t, "cleanup --stuck --yes -q")
		assert.Empty(t, r.stderr)
		assert.Empty(t, p.Calls(fake.OpTerminate))
		assert.Equal(t, 0, b.run(t, "cron check --layer stuck").code)
	})
}

// TestPrintedLinesSayWhatTheyLeave, before anybody installs them.
func TestPrintedLinesSayWhatTheyLeave(t *testing.T) {
	t.Parallel()
	b, _ := switchedOn(t, 0, nil)
	for _, line := range []string{"cron print", "cron print --systemd"} {
		r := b.run(t, line)
		require.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "# Of cloud they terminate only sandboxes with the label sbx/owner: sbx does not know who owns the others.\n", line)
		assert.Contains(t, r.stdout, "#   /bin/false config own --provider cloud --all\n", line)
	}
	assert.Contains(t, b.run(t, "cron print").stdout, "#   /bin/false reconcile --provider cloud --adopt --fix\n")
	assert.NotContains(t, b.run(t, "cron print --layer stuck").stdout, "reconcile")
	r := b.run(t, "cron print -o json")
	assert.Contains(t, r.stderr, "Of cloud they terminate only sandboxes with the label sbx/owner")
	r = b.run(t, "cron print --provider cloud")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stdout+r.stderr, "does not know who owns", "to name a profile owns nothing")
}

// TestConfigOwn goes the way that the hints show: from what nobody owns to what ends.
func TestConfigOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := switchedOn(t, 4, map[string]string{"team": "agents"})
		require.Equal(t, 11, b.run(t, "cleanup --stuck --yes -q").code)
		require.Empty(t, p.Calls(fake.OpTerminate))
		require.Equal(t, 10, b.run(t, "cron check --layer stuck").code)
		file := filepath.Join(b.home, ".config", "sbx", "config.yaml")

		r := b.run(t, "config own --provider cloud --all --dry-run")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, "Nothing was written; this would change in "+file+":\n+providers:\n+  cloud:\n+    type: cloud\n+    owned: all\n", r.stdout)
		assert.NoFileExists(t, file)
		item := b.run(t, "config own --provider cloud --label team=agents -o json").item(t)
		assert.Equal(t, map[string]any{
			"path": file, "providers": []any{"cloud"}, "owned": "team=agents", "written": true,
			"diff": []any{"+providers:", "+  cloud:", "+    type: cloud", "+    owned: {labels: {team: agents}}"},
		}, item)
		r = b.run(t, "config own --provider cloud --label team=agents")
		assert.Contains(t, r.stdout, "says so already: of cloud yours are: team=agents")
		assert.Equal(t, 10, b.run(t, "cron check --layer stuck").code, "it is decided, and no run has proved it")

		r = b.run(t, "cleanup --stuck --yes -q --max-fraction 100%")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Empty(t, r.stderr)
		assert.Len(t, p.Calls(fake.OpTerminate), 4)
		assert.Equal(t, 0, b.run(t, "cron check --layer stuck").code)
	})
}

func TestConfigOwnRefusesNonsense(t *testing.T) {
	t.Parallel()
	b, _ := switchedOn(t, 0, nil)
	for line, want := range map[string][2]string{
		"config own":                  {"no profile was named", "config own --provider cloud --all"},
		"config own --provider cloud": {"neither --all nor --label was given", "--label KEY=VALUE"},
		"config own --provider cloud --all --label a=b":      {"exclude each other", "--all means every sandbox"},
		"config own --provider cloud --label team":           {"is not KEY=VALUE", "--label team=agents"},
		"config own --provider cloud --label team=":          {"has no value", "takes any value"},
		"config own --provider cloud --label sbx/keep=true":  {"protects a sandbox", "name another label"},
		"config own --provider clodu --all":                  {`there is no profile "clodu"`, "`sbx providers`"},
		"config own cloud --all":                             {"", "`sbx config own --provider cloud`"},
		"ls cloud":                                           {"takes no arguments", "`sbx ls --provider cloud`"},
		"stats local":                                        {"takes no arguments", "`sbx stats --provider local`"},
		"config own --provider cloud --all --config /x/y/..": {"", ""},
	} {
		r := b.run(t, line)
		assert.Contains(t, []int{2, 11}, r.code, "%s: %s", line, r.stdout)
		assert.Contains(t, r.stderr, want[0], line)
		assert.Contains(t, r.stderr, want[1], line)
		assert.Empty(t, r.stdout, line)
	}
}

// TestWhatSDKsWriteIsRead by everything that knows tasks, agents and owners, and makes
// nothing ours.
func TestWhatSDKsWriteIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := switchedOn(t, 2, map[string]string{"task_id": "job-7", "agent_type": "coder", "owner": "somebody"})
		p.Add(quietHerd("bare", 1)...)
		for _, flags := range []string{"--task job-7", "--agent-type coder", "--owner somebody"} {
			items := b.run(t, "ls "+flags+" -o json").list(t, "items")
			require.Len(t, items, 2, flags)
			assert.Equal(t, []any{"job-7", "coder", "somebody"}, []any{items[0]["task_id"], items[0]["agent_type"], items[0]["owner"]})
		}
		assert.Empty(t, b.run(t, "ls --owner nobody -o json").list(t, "items"))
		item := b.run(t, "inspect cloud/clod0000 -o json").item(t)
		assert.Equal(t, []any{"job-7", "coder", "somebody"}, []any{item["task_id"], item["agent_type"], item["owner"]})
		assert.Contains(t, b.run(t, "inspect cloud/clod0000").stdout, "somebody")
		r := b.run(t, "cleanup --stuck --yes -q")
		assert.Contains(t, r.stderr, "3 stuck sandboxes were skipped because nobody owns them", "an owner that is read for people is no ownership")
		assert.Empty(t, p.Calls(fake.OpTerminate))
		r = b.run(t, "cleanup --owner somebody --yes --unowned")
		assert.Equal(t, 0, r.code, r.stderr)
	})
}

// TestAnUnattendedRunThatNobodyOwnsIsNotGreen: what is ours ends, the rest is named, and only a good run gets the code
// of a refusal: not one with a code of its own, one that a person watches, or one that may end what nobody owns.
func TestAnUnattendedRunThatNobodyOwnsIsNotGreen(t *testing.T) {
	t.Parallel()
	const fromFile = "providers:\n  cloud: {type: cloud}\n"
	for name, tc := range map[string]struct {
		file, line string
		tty, lies  bool
		code       int
		kept       bool
	}{
		"by its variable":          {line: "cleanup --stuck --yes -q", code: 11, kept: true},
		"a flag that narrows":      {line: "cleanup --stuck --yes -q --provider cloud", code: 11, kept: true}, // is no statement about whose they are
		"in a file":                {file: fromFile, line: "cleanup --stuck --yes -q", code: 11, kept: true},
		"by age":                   {file: fromFile, line: "cleanup --older-than 10m --yes -q", code: 11, kept: true},
		"watched":                  {file: fromFile, line: "cleanup --stuck --yes -q", tty: true, code: 0, kept: true},
		"a code of its own":        {file: fromFile, line: "cleanup --stuck --yes -q --wait 1s", lies: true, code: 7, kept: true},
		"nothing matches the rule": {file: fromFile, line: "cleanup --stuck --yes -q --name prod*", code: 0},
		"a flag says otherwise":    {file: fromFile, line: "cleanup --stuck --yes -q --unowned", code: 0},
		"the file says labels":     {file: "providers:\n  cloud: {type: cloud, owned: {labels: {sbx/owner: '*'}}}\n", line: "cleanup --stuck --yes -q", code: 0},
		"the file says all":        {file: "providers:\n  cloud: {type: cloud, owned: all}\n", line: "cleanup --stuck --yes -q", code: 0},
		"the plan of a file":       {file: fromFile, line: "cleanup --yes -q --apply PLAN", code: 11, kept: true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := switchedOn(t, 4, nil)
			mine := quiet("mine0001", time.Hour)
			mine.Sandbox.Labels = map[string]string{sandbox.LabelOwner: "me"}
			p.Add(mine)
			if tc.file != "" {
				b.configure(t, tc.file)
			}
			if plan := filepath.Join(b.home, "plan.json"); strings.Contains(tc.line, "PLAN") {
				require.Equal(t, 0, b.run(t, "cleanup --stuck --out "+plan).code)
				tc.line = strings.ReplaceAll(tc.line, "PLAN", plan)
			}
			if tc.lies {
				p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "503")})
			}
			b.tty = tc.tty
			r := b.run(t, tc.line+" --max-fraction 100%")
			assert.Equal(t, tc.code, r.code, r.stderr)
			if tc.kept {
				require.Len(t, p.Calls(fake.OpTerminate), 1, "what is ours ends, and nothing else")
				assert.Equal(t, "mine0001", p.Calls(fake.OpTerminate)[0].ID)
				assert.Equal(t, 1, strings.Count(r.stderr, "skipped because nobody owns them (cloud 4): cloud/clod0000, cloud/clod0001, cloud/clod0002, cloud/clod0003"), r.stderr)
				assert.Contains(t, r.stderr, "`owned: all`")
				assert.Contains(t, r.stderr, "`owned: {labels: {KEY: VALUE}}`")
			} else {
				assert.NotContains(t, r.stderr, "nobody owns")
			}
			if tc.code == 11 {
				run := b.run(t, "cleanup runs -o json").list(t, "items")[0]
				assert.InDelta(t, 11, run["exit_code"], 0)
				assert.Equal(t, false, run["resumable"])
			}
		})
	}
}

// TestWithoutLabelsOneLineIsOffered: no label could name an owner there.
func TestWithoutLabelsOneLineIsOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := switchedOn(t, 4, nil)
		with := b.adjust
		b.adjust = func(d *Deps) {
			with(d)
			d.Types[1].NoLabels = true
		}
		r := b.run(t, "cleanup --stuck --yes -q")
		assert.Equal(t, 11, r.code)
		assert.Contains(t, r.stderr, "sbx: hint: `sbx config own --provider cloud --all` writes `owned: all` (every sandbox there is yours)\n")
	})
}

// TestAnotherHostSeesNoGreenEither: it knows no counts of a run, only what it proves.
func TestAnotherHostSeesNoGreenEither(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		there, _ := switchedOn(t, 4, nil)
		there.shared = store.Memory(time.Now)
		require.Equal(t, 11, there.run(t, "cleanup --stuck --yes -q").code)
		here, _ := switchedOn(t, 4, nil)
		here.shared = there.shared
		assert.Equal(t, 10, here.run(t, "cron check --layer stuck").code)
		require.Equal(t, 0, there.run(t, "cleanup --stuck --yes -q --unowned --max-fraction 100%").code)
		assert.Equal(t, 0, here.run(t, "cron check --layer stuck").code)
	})
}
