package commands

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// twoFleets is a bench over the profiles prod and other, each with this many silent
// sandboxes that are an hour old.
func twoFleets(t *testing.T, n int) (b *bench, prod, other *fake.Provider) {
	t.Helper()
	prod, other = fake.New(fake.Options{Name: "prod", Now: atNoon}), fake.New(fake.Options{Name: "other", Now: atNoon})
	prod.Add(quietHerd("prod", n)...)
	other.Add(quietHerd("othr", n)...)
	return newBench(prod, other).configure(t, twoProfiles), prod, other
}

// verdicts are the verdicts of the layers, and of `cleanup status`.
func (b *bench) verdicts(t *testing.T) map[string]any {
	t.Helper()
	got := map[string]any{"status": b.run(t, "cleanup status -o json").item(t)["verdict"]}
	for _, item := range b.run(t, "cron check -o json").list(t, "items") {
		name, _ := item["layer"].(string)
		got[name] = item["verdict"]
	}
	return got
}

// TestWhatIsNoProofOfALayer: each of these runs has ended with the exit code that is
// given, and no layer has proof by it.
func TestWhatIsNoProofOfALayer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		code int
		prod []fake.Fault
	}{
		"a label that nothing has":      {"cleanup --label nope=1 --yes", 0, nil},
		"stuck, narrowed by a label":    {"cleanup --stuck --label nope=1 --yes", 0, nil},
		"age, narrowed by a label":      {"cleanup --older-than 10m --label nope=1 --yes", 0, nil},
		"age, narrowed by a name":       {"cleanup --older-than 10m --name nope* --yes", 0, nil},
		"stuck, narrowed by a state":    {"cleanup --stuck --state paused --yes", 0, nil},
		"stuck, narrowed by an age":     {"cleanup --stuck --younger-than 1m --yes", 0, nil},
		"stuck, a longer silence":       {"cleanup --stuck --idle-for 3h --yes", 0, nil},
		"age, a longer age":             {"cleanup --older-than 30d --yes", 0, nil},
		"age, only of what is broken":   {"cleanup --older-than 10m --unhealthy --yes", 0, nil},
		"only failed ones":              {"cleanup --failed-older-than 10m --include-failed --yes", 0, nil},
		"stuck, another profile":        {"cleanup --stuck --provider other --yes --max-fraction 100%", 0, nil},
		"age, another profile":          {"cleanup --older-than 10m --provider other --yes --max-fraction 100%", 0, nil},
		"age, a dry run":                {"cleanup --older-than 10m", 0, nil},
		"age, cut by a guard":           {"cleanup --older-than 10m --yes --max-delete 1", 11, nil},
		"age, a profile with a hole":    {"cleanup --older-than 10m --yes --max-fraction 100%", 3, []fake.Fault{{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")}}},
		"age, ends that are refused":    {"cleanup --older-than 10m --yes --max-fraction 100%", 3, []fake.Fault{{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "403")}}},
		"reconcile, another profile":    {"reconcile --check --provider other", 0, nil},
		"reconcile, that ends nothing":  {"reconcile --fix --yes --adopt", 0, nil},
		"reconcile, with ten looks":     {"reconcile --check --observations 10", 0, nil},
		"reconcile, looks a day apart":  {"reconcile --check --grace 1d", 0, nil},
		"reconcile, a plan and no more": {"reconcile", 0, nil},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, prod, _ := twoFleets(t, 4)
			prod.Break(tc.prod...)
			r := b.run(t, tc.line)
			require.Equal(t, tc.code, r.code, "%s: %s", r.stdout, r.stderr)
			for layer, verdict := range b.verdicts(t) {
				assert.NotEqual(t, "true", verdict, layer)
			}
		})
	}
}

// TestWhatProvesALayer, in every profile, by one run or by one for each of them.
func TestWhatProvesALayer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lines  []string
		proves []string
	}{
		"stuck":                                {[]string{"cleanup --stuck --yes --max-fraction 100%"}, []string{"stuck", "status"}},
		"age":                                  {[]string{"cleanup --older-than 10m --yes --max-fraction 100%"}, []string{"age", "status"}},
		"a shorter age":                        {[]string{"cleanup --older-than 5m --include-failed --ignore-activity --yes --max-fraction 100%"}, []string{"age", "status"}},
		"each profile alone":                   {[]string{"cleanup --stuck --provider prod --yes --max-fraction 100%", "cleanup --stuck --provider other --yes --max-fraction 100%"}, []string{"stuck", "status"}},
		"reconcile that acts":                  {[]string{"reconcile --fix --yes"}, []string{"reconcile"}},
		"reconcile that only looks, and finds": {[]string{"reconcile --check"}, []string{"reconcile"}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			b, _, _ := twoFleets(t, 4)
			for _, line := range tc.lines {
				r := b.run(t, line)
				require.Contains(t, []int{0, 10}, r.code, "%s: %s", r.stdout, r.stderr)
			}
			for layer, verdict := range b.verdicts(t) {
				if slices.Contains(tc.proves, layer) {
					assert.Equal(t, "true", verdict, layer)
				} else {
					assert.NotEqual(t, "true", verdict, layer)
				}
			}
		})
	}
}

// TestASourceThatDoesNotAnswerIsNoSuccess: what it may have seen was not judged.
func TestASourceThatDoesNotAnswerIsNoSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, prod, _ := twoFleets(t, 1)
		prod.Break(fake.Fault{Op: fake.OpActivity, Err: fault.New(fault.KindUnavailable, "503")})
		r := b.run(t, "cleanup --older-than 10m --yes")
		require.Equal(t, 3, r.code, r.stderr)
		r = b.run(t, "cron check --layer age -o json")
		assert.Equal(t, 10, r.code)
		assert.Contains(t, r.list(t, "items")[0]["message"], "it has never succeeded at prod; ", "the other profile is in order")
	})
}

// TestWhyARunIsNoProof is said where people look for it.
func TestWhyARunIsNoProof(t *testing.T) {
	t.Parallel()
	b, _, _ := twoFleets(t, 1)
	require.Equal(t, 0, b.run(t, "cleanup --older-than 1d --yes").code)
	r := b.run(t, "cron check --layer age")
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stdout, "it has never succeeded; it last ran 0s ago, which does not count: it covers only a part of its layer: --older-than 1d")
	assert.Contains(t, b.run(t, "cleanup status").stderr, "it covers only a part of its layer: --older-than 1d")

	b, _, _ = twoFleets(t, 1)
	require.Equal(t, 0, b.run(t, "cleanup --stuck --provider other --yes").code)
	assert.Contains(t, b.run(t, "cron check --layer stuck").stdout, "it has never succeeded at prod; ")
}

// TestARunOfAnotherHostIsAProof, where it was one there, in its profiles.
func TestARunOfAnotherHostIsAProof(t *testing.T) {
	t.Parallel()
	there, _, _ := twoFleets(t, 1)
	there.shared = store.Memory(time.Now)
	require.Equal(t, 0, there.run(t, "cleanup --older-than 30d --yes").code)
	here, _, _ := twoFleets(t, 1)
	here.shared = there.shared
	assert.NotEqual(t, 0, here.run(t, "cron check --layer age").code)
	require.Equal(t, 0, there.run(t, "cleanup --older-than 10m --yes").code)
	assert.Equal(t, 0, here.run(t, "cron check --layer age").code)
}

// TestALineWithoutYesSaysThatItDoesNothing: it is what people put into cron first.
func TestALineWithoutYesSaysThatItDoesNothing(t *testing.T) {
	t.Parallel()
	const says = "sbx: warning: nothing was done; to terminate, add --yes, or let every cleanup without a terminal act: " +
		"`cleanup: {unattended: true}` in the configuration, or SBX_UNATTENDED=1 in the crontab\n"
	for line, code := range map[string]int{
		"cleanup --older-than 10m":                      0,
		"cleanup --older-than 10m -q":                   0,
		"cleanup --older-than 10m -o json":              0,
		"cleanup --older-than 10m --detailed-exitcode":  10,
		"cleanup --older-than 3h --detailed-exitcode":   0,
		"cleanup --stuck --textfile /dev/null/none -q":  0,
		"cleanup --older-than 10m --if-usage-above 80%": 0,
	} {
		b, p := herdBench(t, 4)
		b.most = map[string]int{"prod": 4}
		r := b.run(t, line)
		assert.Equal(t, code, r.code, line)
		assert.Contains(t, r.stderr, says, line)
		assert.Empty(t, p.Calls(fake.OpTerminate), line)
		r = b.run(t, "cron check --layer age")
		assert.Equal(t, 7, r.code, "it has left no record")
		assert.Contains(t, r.stderr, "a line without --yes does nothing and leaves no record")
		assert.Contains(t, b.run(t, "cleanup status").stdout+b.run(t, "cleanup status").stderr, "or lacks --yes")
	}
	for _, line := range []string{"cleanup --older-than 10m --yes --max-fraction 100%", "cleanup --older-than 10m --out plan.json", "cleanup --older-than 10m --explain prod/prod0000"} {
		b, _ := herdBench(t, 4)
		b.workdir = b.home
		assert.NotContains(t, b.run(t, line).stderr, "add --yes", line)
	}
	b, _ := herdBench(t, 4)
	b.tty, b.stdin = true, "no\n"
	assert.NotContains(t, b.run(t, "cleanup --older-than 10m").stderr, "add --yes", "somebody was asked")
}
