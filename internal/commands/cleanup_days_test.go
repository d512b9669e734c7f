package commands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/lock"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// quiet is a sandbox that runs, is silent, and rests.
func quiet(id string, age time.Duration) fake.Seed {
	seed := using(id, age, growing(0, 0, 0))
	seed.Sandbox.LastActivityAt = noon.Add(-age)
	return seed
}

// herd is n quiet sandboxes of half an hour.
func quietHerd(prefix string, n int) []fake.Seed {
	seeds := make([]fake.Seed, n)
	for i := range seeds {
		seeds[i] = quiet(fmt.Sprintf("%s%04d", prefix, i), 30*time.Minute+time.Duration(n-i)*time.Second)
	}
	return seeds
}

const twoProfiles = "providers:\n  prod: {type: local}\n  other: {type: fake, owned: all}\n"

// days is one bad day over two profiles, each with four old sandboxes.
type day struct {
	fails   string // the tool that fails it, and how (facts of hygiene, section 2)
	config  string
	options fake.Options // of prod
	seeds   []fake.Seed  // of prod; nil = four quiet ones
	alone   bool         // prod is the only profile
	faults  []fake.Fault // of prod
	line    string       // "" = an hour's rule that acts
	adjust  func(*testing.T, *bench, *fake.Provider)
	code    int
	asked   int    // of prod
	says    string // in stdout or stderr
}

const tenMinutes = "cleanup --older-than 10m --yes --max-fraction 100%"

func badDays() map[string]day {
	down := fault.New(fault.KindUnavailable, "503 service unavailable")
	label := func(id, value string) fake.Seed {
		s := quiet(id, time.Hour)
		s.Sandbox.Labels = map[string]string{sandbox.LabelKeep: value}
		return s
	}
	born := func(id string, at time.Time) fake.Seed {
		s := quiet(id, time.Hour)
		s.Sandbox.CreatedAt, s.Sandbox.StartedAt = at, time.Time{}
		return s
	}
	return map[string]day{
		"an ordinary day": {line: tenMinutes, asked: 4, says: `"verified":8`},

		"page 2 fails": {
			fails: "aws-nuke: what the later pages hold is never seen", options: fake.Options{PageSize: 2},
			faults: []fake.Fault{{Op: fake.OpList, Page: 2, Err: down}}, code: 3, says: "503",
		},
		"page 2 fails, the only profile": {
			fails: "aws-nuke", options: fake.Options{PageSize: 2}, alone: true,
			faults: []fake.Fault{{Op: fake.OpList, Page: 2, Err: down}}, code: 7, says: "503",
		},
		"the list fails": {
			fails: "cloud-nuke: all good, exit 0; kor: exit 0; libnuke: nothing to delete", alone: true,
			faults: []fake.Fault{{Op: fake.OpList, Err: down}}, code: 7, says: "503",
		},
		"one of two lists fails": {
			fails:  "cloud-nuke, kor, libnuke",
			faults: []fake.Fault{{Op: fake.OpList, Err: down}}, code: 3, says: `"complete":false`,
		},
		"the token repeats": {
			fails:  "a listing loop without a guard never ends (rebuy-de/aws-nuke#228's class)",
			faults: []fake.Fault{{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "the page token repeats")}}, code: 3, says: "token repeats",
		},
		"the list flaps after the end": {
			fails:   "daytona#5138: absent, present, absent for 2.6 s; relay#1711 sent DELETE four times",
			options: fake.Options{After: fake.AfterMissing, Flap: 3 * time.Second}, asked: 4, says: `"verified":8`,
		},
		"a creation time in the future": {
			fails: "a negative age in docker and cloud-nuke selects all", seeds: []fake.Seed{born("late0001", noon.Add(time.Hour))},
			line: tenMinutes + " --provider prod", says: `"selected":0`,
		},
		"the wrong zone makes it older": {
			fails: "gobblin#4070: local time read as UTC", seeds: []fake.Seed{quiet("zone0001", 10*time.Minute)}, // exactly the limit is not older
			line: tenMinutes + " --provider prod", says: `"selected":0`,
		},
		"accepted, and still there": {
			fails: "cloud-nuke, kor: a 2xx counts as deleted", options: fake.Options{EndFor: fake.Forever},
			line: tenMinutes + " --provider prod --wait 1s", asked: 4, code: 8, says: `"stuck":4`,
		},
		"a terminate that does nothing": {
			fails: "aws-nuke#367: removed, although the API refused", faults: []fake.Fault{{Op: fake.OpTerminate, Skip: true}},
			line: tenMinutes + " --provider prod --wait 1s", asked: 4, code: 8, says: `"accepted":4`,
		},
		"a throttled item is not lost": {
			fails:  "cloud-nuke: the throttled batch is left out of the exit code",
			faults: []fake.Fault{{Op: fake.OpTerminate, ID: "prod0001", Err: fault.New(fault.KindUnavailable, "429 too many requests")}},
			asked:  4, code: 3, says: `"failed":1`,
		},
		"one fails, the rest goes on": {
			fails:  "docker/cli#310: one refusal stops the run halfway",
			faults: []fake.Fault{{Op: fake.OpTerminate, ID: "prod0000", Err: fault.New(fault.KindAuth, "403")}}, asked: 4, code: 3, says: `"verified":7`,
		},
		"a protection until later": {
			fails: "cloud-nuke-after", seeds: []fake.Seed{label("keep0001", noon.Add(time.Hour).Format(time.RFC3339))}, line: tenMinutes + " --provider prod", says: `"selected":0`,
		},
		"a protection that is over": {seeds: []fake.Seed{label("keep0001", noon.Add(-time.Hour).Format(time.RFC3339))}, line: tenMinutes + " --provider prod", asked: 1},
		"an unparsable protection": {
			fails: "cloud-nuke: an unparsable date protects nothing", seeds: []fake.Seed{label("keep0001", "next tuesday")}, line: tenMinutes + " --provider prod", says: `"selected":0`,
		},
		"clock 10 minutes behind": {
			fails: "no peer compares clocks", options: fake.Options{Skew: 10 * time.Minute}, code: 11, says: "the clock of prod is 10m ahead of",
		},
		"production, named": {
			config: twoProfiles + "production: [prod]\n", line: tenMinutes + " --production prod", asked: 4,
		},
		"no selector acts not": {fails: "docker prune", line: "cleanup --yes", code: 11, says: "--yes needs a selector"},
		"the breaker":          {fails: "agent-sandbox#1232", faults: []fake.Fault{{Op: fake.OpGet, Err: down}}, code: 3},
		"the journal's disk is full": {
			fails: "no peer writes before it deletes", code: 1, says: "journal cannot be written",
			adjust: func(t *testing.T, b *bench, _ *fake.Provider) {
				t.Helper()
				require.NoError(t, os.WriteFile(filepath.Join(b.home, "runs"), nil, 0o600)) // no folder can be there
			},
		},
		"another run is active": {
			fails: "only docker's daemon refuses a second prune", code: 12, says: "another run is active: r-0",
			adjust: func(t *testing.T, b *bench, _ *fake.Provider) {
				t.Helper()
				l, err := lock.Take(t.Context(), filepath.Join(b.home, "cleanup.lock"), lock.Holder{Run: "r-0", Who: "ann", PID: 1}, 0)
				require.NoError(t, err)
				t.Cleanup(func() { _ = l.Release() })
			},
		},
		"interrupted before it began": {
			code: 130, says: "context canceled", adjust: func(_ *testing.T, b *bench, _ *fake.Provider) { b.context = halt },
		},
		"a hung provider costs itself alone": {
			fails: "kubectl waits one by one", faults: []fake.Fault{{Op: fake.OpList, Hang: true}}, code: 3, says: "no answer within",
		},
	}
}

func TestBadDays(t *testing.T) {
	t.Parallel()
	for name, d := range badDays() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if d.adjust == nil {
				synctest.Test(t, d.check)
				return
			}
			d.check(t) // a real lock or disk waits in real time
		})
	}
}

func (d day) check(t *testing.T) {
	t.Helper()
	t.Logf("who fails it: %s", d.fails)
	d.options.Name, d.options.Now = "prod", atNoon
	prod, other := fake.New(d.options), fake.New(fake.Options{Name: "other", Now: atNoon})
	if d.seeds == nil {
		d.seeds = quietHerd("prod", 4)
	}
	prod.Add(d.seeds...)
	other.Add(quietHerd("othr", 4)...)
	b := newBench(prod, other)
	if d.alone {
		b = newBench(prod)
	}
	if d.config == "" {
		d.config = twoProfiles
	}
	b.configure(t, d.config)
	if d.adjust != nil {
		d.adjust(t, b, prod)
	}
	prod.Break(d.faults...)
	if d.line == "" {
		d.line = tenMinutes
	}
	r := b.run(t, d.line+" -o json")
	require.Equal(t, d.code, r.code, "%s%s", r.stdout, r.stderr)
	assert.Len(t, prod.Calls(fake.OpTerminate), d.asked)
	assert.Empty(t, prod.Calls(fake.OpExec), "a look runs nothing of its own")
	said := strings.ReplaceAll(r.stdout, `": `, `":`) + r.stderr
	assert.True(t, strings.Contains(said, d.says), "%q is not said: %s", d.says, r.stderr) //nolint:testifylint // the whole document would drown the reason
	if r.code != 2 {
		r.object(t)
	}
	d.checkSums(t, r)
}

// checkSums: outcomes sum to the selection, each once.
func (d day) checkSums(t *testing.T, r result) {
	t.Helper()
	counts, acted := r.object(t)["counts"].(map[string]any)
	if !acted {
		return
	}
	sum := 0.0
	for outcome, n := range counts {
		if outcome != "selected" {
			number, ok := n.(float64)
			require.True(t, ok)
			sum += number
		}
	}
	assert.InDelta(t, counts["selected"], sum, 0)
}

func TestAgesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{
		{"--older-than", "-5m"},
		{"--older-than", "0"},
		{"--older-than", "0s"},
		{"--older-than", "10"},
		{"--older-than=10", "minutes"},
		{"--idle-for", "-1s"},
		{"--max-delete", "0"},
		{"--max-fraction", "25"},
		{"--concurrency", "0"},
		{"--wait", "0s"},
		{"--resume", "r-1", "--stuck"},
	} {
		b, p := endBench(t, 3)
		r := b.runArgs(t, append([]string{"cleanup", "--yes"}, line...)...)
		assert.Equal(t, 2, r.code, "%q: %s", line, r.stderr)
		assert.Empty(t, p.Calls(), "%q: nothing is called", line)
		assert.Empty(t, r.stdout, "%q", line)
		assert.Contains(t, r.stderr, "sbx: error: ", "%q", line)
	}
}

func TestPlansThatAreTooOldOrNone(t *testing.T) {
	t.Parallel()
	b, p := endBench(t, 1)
	write := func(text string) string {
		file := filepath.Join(b.home, "plan.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	at := func(age time.Duration) string {
		return fmt.Sprintf(`{"schema":"sbx.cleanup-plan/v1","run_id":"r","made_at":%q,"cutoff":"0001-01-01T00:00:00Z","rule":{"selector":{}},"items":[]}`, noon.Add(-age).Format(time.RFC3339))
	}
	for name, tc := range map[string]struct {
		text string
		code int
		says string
	}{
		"too old":       {at(2 * time.Hour), 11, "the plan is 2h old"},
		"of the future": {at(-time.Hour), 11, "future"},
		"not a plan":    {`{"schema":"other"}`, 2, "not a plan"},
		"torn":          {at(0)[:40], 2, "not a plan"},
		"negative age":  {strings.Replace(at(0), `{"selector":{}}`, `{"selector":{"older_than_ns":-5}}`, 1), 2, "negative older_than_ns"},
		"one twice":     {strings.Replace(at(0), `"items":[]`, `"items":[{"ref":"prod/aaaa"},{"ref":"prod/aaaa"}]`, 1), 2, "names prod/aaaa twice"},
		"unknown key":   {`{"schema":"sbx.cleanup-plan/v1","everything":true}`, 2, "unknown key"},
	} {
		r := b.run(t, "cleanup --yes --apply "+write(tc.text))
		assert.Equal(t, tc.code, r.code, "%s: %s", name, r.stderr)
		assert.Contains(t, r.stderr, tc.says, name)
	}
	assert.Equal(t, 2, b.run(t, "cleanup --yes --apply "+filepath.Join(b.home, "nosuch")).code)
	assert.Empty(t, p.Calls(fake.OpTerminate))
	r := b.run(t, "cleanup --apply "+write(at(0)))
	assert.Equal(t, 11, r.code, "nobody allowed it")
}

func TestARunWhoseJournalWasChanged(t *testing.T) {
	t.Parallel()
	b, p := oneFake(quietHerd("prod", 4)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	disk := journal.Dir(filepath.Join(b.home, "runs"))
	runs, err := journal.Runs(disk)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	file := filepath.Join(b.home, "runs", runs[0]+".jsonl")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "verified", "skipped!", 1)), 0o600))
	r := b.run(t, "cleanup runs -o json")
	assert.NotEqual(t, 0, r.code)
	assert.Contains(t, r.stdout, "was changed after it was written")
	r = b.run(t, "cleanup show "+runs[0]+" -o json")
	assert.Equal(t, 10, r.code, r.stderr)
	assert.Contains(t, r.stdout, "was changed or damaged")
	asked := len(p.Calls(fake.OpTerminate))
	assert.Equal(t, 11, b.run(t, "cleanup --resume "+runs[0]+" --yes").code)
	assert.Len(t, p.Calls(fake.OpTerminate), asked)
}

// TestAProvidersCleanupWithoutItsLastLine is no success: what it did is not on record.
func TestAProvidersCleanupWithoutItsLastLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(quietHerd("prod", 2)...)
		b.configure(t, "providers:\n  prod: {type: local}\n")
		b.adjust = func(d *Deps) { d.Journals = func() (journal.Disk, error) { return fullAfter{&full{left: 5}}, nil } }
		r := b.run(t, "cleanup --emergency --yes --provider prod --production prod -o json")
		assert.Equal(t, 1, r.code, r.stdout)
		assert.Contains(t, r.stdout, "the journal cannot be written")
		assert.Len(t, p.Calls(fake.OpCleanup), 1)
	})
}

// fullAfter is a disk with room for some lines, and full one of its files.
type fullAfter struct{ file *full }

func (d fullAfter) Create(string) (journal.File, error)        { return d.file, nil }
func (d fullAfter) Extend(string, int64) (journal.File, error) { return d.file, nil }
func (d fullAfter) Open(string) (io.ReadCloser, error)         { return nil, os.ErrNotExist }
func (d fullAfter) Names() ([]string, error)                   { return nil, nil }
func (d fullAfter) Remove(string) error                        { return nil }

type full struct{ left int }

func (f *full) Write(line []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(line), nil
}
func (f *full) Sync() error  { return nil }
func (f *full) Close() error { return nil }

func TestStatusTellsWhetherItRuns(t *testing.T) {
	t.Parallel()
	b, p := oneFake(quietHerd("prod", 4)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	r := b.run(t, "cleanup status -o json")
	assert.Equal(t, 7, r.code, "it may run on another machine")
	assert.Equal(t, "unknown", r.item(t)["verdict"])
	assert.Nil(t, r.item(t)["last_run"])

	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m").code)
	assert.Nil(t, b.run(t, "cleanup status -o json").item(t)["last_run"], "a dry run leaves nothing")
	require.Equal(t, 11, b.run(t, "cleanup --older-than 10m --yes --max-delete 1").code)
	r = b.run(t, "cleanup status -o json")
	assert.Equal(t, 10, r.code)
	assert.NotNil(t, r.item(t)["last_run"])
	assert.Nil(t, r.item(t)["last_success"], "a refused run is no success")
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	r = b.run(t, "cleanup status -o json")
	assert.Equal(t, 0, r.code)
	assert.Equal(t, "true", r.item(t)["verdict"])
	assert.Contains(t, b.run(t, "cleanup status -o nagios").stdout, "SBX OK: ")
	assert.Len(t, p.Calls(fake.OpTerminate), 4)
}

func TestAProviderCleansUpBehindAGate(t *testing.T) {
	t.Parallel()
	old, young := quiet("old00001", time.Hour), quiet("yng00001", time.Minute)
	kept := quiet("keep0001", time.Hour)
	kept.Sandbox.Labels = map[string]string{sandbox.LabelKeep: "true"}
	for name, tc := range map[string]struct {
		line  string
		seeds []fake.Seed
		code  int
		calls int
		says  string
	}{
		"no profile named":      {"cleanup --emergency --yes", nil, 2, 0, "needs --provider"},
		"not spelled out":       {"cleanup --emergency --yes --provider prod", nil, 11, 0, "--production prod"},
		"nobody allowed it":     {"cleanup --emergency --production prod --provider prod", nil, 11, 0, "--yes"},
		"no selector with it":   {"cleanup --emergency --older-than 10m --yes --provider prod --production prod", nil, 2, 0, "no meaning"},
		"what is protected":     {"cleanup --emergency --yes --provider prod --production prod", []fake.Seed{old, kept}, 11, 0, "ignores that"},
		"all of it":             {"cleanup --emergency --yes --provider prod --production prod", []fake.Seed{old, young}, 0, 1, `"verified":2`},
		"what it holds for old": {"cleanup --provider-side --yes --provider prod --production prod", []fake.Seed{old, young}, 0, 1, `"skipped":1`},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, p := oneFake(tc.seeds...)
			b.configure(t, "providers:\n  prod: {type: local}\n")
			r := b.run(t, tc.line+" -o json")
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpCleanup), tc.calls)
			assert.Empty(t, p.Calls(fake.OpTerminate))
			assert.Contains(t, strings.ReplaceAll(r.stdout, `": `, `":`)+r.stderr, tc.says)
		})
	}
}

func TestOnlyUnderPressure(t *testing.T) {
	t.Parallel()
	quota := func(used float64) []providers.Quota {
		return []providers.Quota{{Name: "concurrent sandboxes", Unit: "sandboxes", Used: &used, Limit: new(10.0)}}
	}
	for name, tc := range map[string]struct {
		options fake.Options
		fault   []fake.Fault
		code    int
		asked   int
	}{
		"above":       {fake.Options{Quotas: quota(9)}, nil, 0, 4},
		"exactly":     {fake.Options{Quotas: quota(8)}, nil, 0, 0},
		"below":       {fake.Options{Quotas: quota(1)}, nil, 0, 0},
		"cannot tell": {fake.Options{Quotas: quota(9)}, []fake.Fault{{Op: fake.OpQuota, Err: fault.New(fault.KindAuth, "403")}}, 4, 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tc.options.Name, tc.options.Now = "prod", atNoon
			p := fake.New(tc.options)
			p.Add(quietHerd("prod", 4)...)
			p.Break(tc.fault...)
			b := newBench(p).configure(t, "providers:\n  prod: {type: local}\n")
			r := b.run(t, tenMinutes+" --if-usage-above 80% -o json")
			require.Equal(t, tc.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked)
		})
	}
	b, _ := oneFake()
	b.configure(t, "providers:\n  prod: {type: local}\n")
	b.members[0] = fake.New(fake.Options{Name: "prod"}).Bare()
	assert.Equal(t, 9, b.run(t, tenMinutes+" --if-usage-above 80%").code)
	assert.Equal(t, 2, b.run(t, tenMinutes+" --if-usage-above 80").code)
}

func TestTheTextfileTellsADryRunFromASuccess(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(quietHerd("prod", 4)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	file := filepath.Join(b.home, "sbx.prom")
	read := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --textfile "+file).code)
	assert.Contains(t, read(), `sbx_cleanup_last_success_timestamp_seconds{layer="age",provider="prod"} 0`)
	assert.Contains(t, read(), `sbx_cleanup_dry_run{layer="age"} 1`)
	require.Equal(t, 11, b.run(t, "cleanup --older-than 10m --yes --max-delete 1 --textfile "+file).code)
	assert.Contains(t, read(), `sbx_cleanup_last_success_timestamp_seconds{layer="age",provider="prod"} 0`)
	assert.Contains(t, read(), `sbx_cleanup_refused{layer="age"} 1`)
	require.Equal(t, 0, b.run(t, tenMinutes+" --textfile "+file).code)
	assert.Contains(t, read(), fmt.Sprintf(`sbx_cleanup_last_success_timestamp_seconds{layer="age",provider="prod"} %d`, noon.Unix()))
	assert.Contains(t, read(), `sbx_cleanup_outcomes{layer="age",outcome="verified",provider="prod"} 4`)
}

func TestEveryGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(quietHerd("prod", 4)...)
		b.configure(t, "providers:\n  prod: {type: local}\n")
		p.Break(fake.Fault{Op: fake.OpList, Times: 1, Err: fault.New(fault.KindUnavailable, "503")})
		b.context = haltedAfter(t, 12*time.Minute)
		r := b.run(t, tenMinutes+" --every 5m")
		assert.Equal(t, 130, r.code, r.stderr)
		assert.Len(t, p.Calls(fake.OpTerminate), 4, "the second run did what the first could not")
		assert.Equal(t, 3, strings.Count(r.stderr, "ended with exit code"))
		assert.Equal(t, 1, strings.Count(r.stderr, "ended with exit code 7"))
	})
}

// TestEveryKeepsItsMoment: what `--before 23:50` means does not change at midnight.
func TestEveryKeepsItsMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := quiet("aaaa0001", 0)
		old.Usage = func(time.Time) sandbox.Usage { return sandbox.Usage{CPUSeconds: new(0.0)} }
		began := time.Now()
		now := func() time.Time { return noon.Add(11*time.Hour + 55*time.Minute + time.Since(began)) }
		p := fake.New(fake.Options{Name: "prod", Now: now})
		p.Add(old)
		b := newBench(p).configure(t, "providers:\n  prod: {type: local}\n")
		b.now = now
		b.context = haltedAfter(t, 17*time.Minute)
		r := b.run(t, "cleanup --before 23:50 --yes --every 10m")
		assert.Equal(t, 130, r.code, r.stderr)
		assert.NotContains(t, r.stderr, "still to come")
		assert.Equal(t, 2, strings.Count(r.stderr, "ended with exit code 0"), r.stderr)
		assert.Len(t, p.Calls(fake.OpTerminate), 1)
	})
}

func TestTheUnhealthyAreThoseThatAnswerNothing(t *testing.T) {
	t.Parallel()
	dead, young, unknown := quiet("dead0001", time.Hour), quiet("dead0002", time.Minute), quiet("mute0001", time.Hour)
	dead.Dead, young.Dead, unknown.Dead = true, true, true
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(dead, young, unknown, quiet("well0001", time.Hour))
		b.configure(t, "providers:\n  prod: {type: local}\n")
		p.Break(fake.Fault{Op: fake.OpProbe, ID: "mute0001", Err: fault.New(fault.KindUnavailable, "503")})
		r := b.run(t, "cleanup --unhealthy --older-than 10m --yes -o json")
		require.Equal(t, 3, r.code, "one could not be asked: %s", r.stderr)
		require.Len(t, p.Calls(fake.OpTerminate), 1, "old and dead; what cannot be asked is no proof")
		assert.Equal(t, "dead0001", p.Calls(fake.OpTerminate)[0].ID)
	})
}

func TestARunWhoseJournalWasCut(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(quietHerd("prod", 4)...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	for range 3 {
		require.Equal(t, 0, b.run(t, tenMinutes).code)
	}
	require.Equal(t, 0, b.run(t, "cleanup runs").code)
	runs, err := journal.Runs(journal.Dir(filepath.Join(b.home, "runs")))
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for _, run := range runs { // all of one moment: any may be the one that others follow
		path := filepath.Join(b.home, "runs", run+".jsonl")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		require.NoError(t, os.WriteFile(path, []byte(first+"\n"), 0o600)) // at the end of a line: each chain holds
	}
	r := b.run(t, "cleanup runs -o json")
	assert.Equal(t, 10, r.code, r.stdout)
	assert.Contains(t, r.stdout, "the journal of the run before")
}

func TestWhatTellsNoAgeIsOldSinceItWasSeen(t *testing.T) {
	t.Parallel()
	seed := quiet("none0001", time.Hour)
	seed.Sandbox.CreatedAt, seed.Sandbox.StartedAt = time.Time{}, time.Time{}
	p := fake.New(fake.Options{Name: "prod", Now: atNoon})
	p.Add(seed)
	b := newBench(p).configure(t, "providers:\n  prod: {type: local}\n")
	at := noon
	b.adjust = func(d *Deps) { d.Process.Now = func() time.Time { return at } }
	assert.Empty(t, b.run(t, tenMinutes+" -o json").list(t, "items"), "nobody has seen it before")
	at = noon.Add(10 * time.Minute)
	assert.Empty(t, b.run(t, tenMinutes+" -o json").list(t, "items"), "exactly is not over")
	at = noon.Add(11 * time.Minute)
	r := b.run(t, tenMinutes+" -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Len(t, r.list(t, "items"), 1)
}

// TestAnEmptiedJournalIsTold: the newest one has no successor that its absence would
// show in.
func TestAnEmptiedJournalIsTold(t *testing.T) {
	t.Parallel()
	b, _ := endBench(t, 1)
	dir := journal.Dir(t.TempDir())
	b.adjust = func(d *Deps) { d.Journals = func() (journal.Disk, error) { return dir, nil } }
	w, err := journal.Create(dir, "r-20261120t120000000-aaaaaa", atNoon)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r := b.run(t, "cleanup runs")
	assert.Equal(t, 10, r.code, r.stderr)
	assert.Contains(t, r.stderr, "is empty")
}
