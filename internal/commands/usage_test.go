package commands

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

func quotaOfTen(used float64) []providers.Quota {
	return []providers.Quota{{Name: "concurrent sandboxes", Unit: "sandboxes", Used: &used, Limit: new(10.0)}}
}

// TestAProvidersCleanupWaitsForPressure: --if-usage-above is no word in the wind.
func TestAProvidersCleanupWaitsForPressure(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--emergency", "--provider-side"} {
		for name, tc := range map[string]struct {
			used  float64
			fault []fake.Fault
			code  int
			asked int
		}{
			"above":       {9, nil, 0, 1},
			"exactly":     {8, nil, 0, 0},
			"below":       {1, nil, 0, 0},
			"cannot tell": {9, []fake.Fault{{Op: fake.OpQuota, Err: fault.New(fault.KindAuth, "403")}}, 4, 0},
			"tells none":  {9, []fake.Fault{{Op: fake.OpQuota, Err: fault.New(fault.KindUnsupported, "older domains")}}, 9, 0},
		} {
			bubble.Run(t, flag+" "+name, func(t *testing.T) {
				p := fake.New(fake.Options{Name: "prod", Now: atNoon, Quotas: quotaOfTen(tc.used)})
				p.Add(quietHerd("prod", 4)...)
				p.Break(tc.fault...)
				b := newBench(p).configure(t, onlyProd)
				r := b.run(t, "cleanup --provider prod --production prod --if-usage-above 80% --yes -o json "+flag)
				require.Equal(t, tc.code, r.code, "%s: %s", r.stdout, r.stderr)
				assert.Len(t, p.Calls(fake.OpCleanup), tc.asked)
				if tc.code == 0 && flag == "--emergency" {
					assert.Equal(t, "true", b.verdicts(t)["usage"], "what it does is the layer's work")
				} else {
					assert.NotEqual(t, "true", b.verdicts(t)["usage"])
				}
			})
		}
	}
}

// TestMaxSandboxesIsAQuota where the provider tells none.
func TestMaxSandboxesIsAQuota(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ most, asked int }{"above": {4, 4}, "exactly": {5, 0}, "below": {50, 0}} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod", Now: atNoon})
			p.Add(quietHerd("prod", 4)...)
			p.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindUnsupported, "no quota")})
			b := newBench(p).configure(t, onlyProd)
			b.most = map[string]int{"prod": tc.most}
			r := b.run(t, tenMinutes+" --if-usage-above 80% -o json")
			require.Equal(t, 0, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked)
		})
	}
}

// TestAProfileWithoutAQuotaIsSaid beside those that tell one: it is not under pressure,
// as far as anybody knows.
func TestAProfileWithoutAQuotaIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, prod, other := twoFleets(t, 2)
		prod.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindUnsupported, "no quota")})
		other.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindUnsupported, "no quota")})
		r := b.run(t, tenMinutes+" --if-usage-above 80%")
		assert.Equal(t, 9, r.code)
		assert.Contains(t, r.stderr, "set limits.max_sandboxes, or max_sandboxes in the profile")
		b.most = map[string]int{"other": 2}
		r = b.run(t, tenMinutes+" --if-usage-above 80% -o json")
		assert.Equal(t, 3, r.code, r.stderr)
		require.Len(t, r.list(t, "errors"), 1)
		assert.Equal(t, "prod", r.list(t, "errors")[0]["provider"])
		assert.Len(t, other.Calls(fake.OpTerminate), 2)
		assert.Empty(t, prod.Calls(fake.OpTerminate))
	})
}

// TestCreateAndRunKeepToTheLimit (R111).
func TestCreateAndRunKeepToTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Now: atNoon})
		p.Add(quietHerd("prod", 3)...)
		b := newBench(p).configure(t, onlyProd)
		b.most = map[string]int{"prod": 3}
		for _, line := range []string{"create --provider prod -- true", "run --provider prod -- true", "run --provider prod --detach -- true", "run --provider prod --key k -- true"} {
			r := b.run(t, line)
			assert.Equal(t, 11, r.code, "%s: %s", line, r.stderr)
			assert.Contains(t, r.stderr, "maximum sandbox limit reached: 3 of 3 run", line)
			assert.Contains(t, r.stderr, "`sbx ls --provider prod --sort -age`", line)
			assert.Empty(t, r.stdout, line)
		}
		assert.Empty(t, p.Calls(fake.OpCreate))
		assert.Empty(t, b.run(t, "tasks -o json").list(t, "items"), "no task has begun")
		b.most = map[string]int{"prod": 4}
		assert.Equal(t, 0, b.run(t, "create --provider prod -- true").code)
	})
}

// TestTheUsageLayerSaysWhatToConfigure, where no provider tells a quota, instead of a
// line that fails every five minutes.
func TestTheUsageLayerSaysWhatToConfigure(t *testing.T) {
	t.Parallel()
	b, _ := switchedOn(t, 0, nil)
	r := b.run(t, "cron print --layer usage")
	require.Equal(t, 0, r.code, r.stderr)
	assert.NotContains(t, r.stdout, "--if-usage-above")
	assert.Contains(t, r.stdout, "# limits.max_sandboxes, or max_sandboxes in the profile, and print the lines again.\n")
	assert.Empty(t, b.run(t, "cron print --layer usage -o json").list(t, "items"))
	r = b.run(t, "cron check --layer usage")
	assert.Equal(t, 7, r.code)
	assert.Contains(t, r.stdout, "no profile reports how much of its quota is used")
	assert.Contains(t, r.stderr, "set limits.max_sandboxes")

	b.env = append(b.env, "SBX_CONFIG="+b.home+"/c.yaml")
	write(t, b.home+"/c.yaml", "limits: {max_sandboxes: 50}\n")
	r = b.run(t, "cron print --layer usage")
	assert.Contains(t, r.stdout, "/bin/false cleanup --if-usage-above 80\\% --older-than 10m --include-failed --yes --config "+b.home+"/c.yaml --provider cloud ")
	assert.NotContains(t, r.stdout, "Layer usage skips")
}

// TestAnEmergencyIsPrintedForWhoHasOne, and is all ours.
func TestAnEmergencyIsPrintedForWhoHasOne(t *testing.T) {
	t.Parallel()
	b, _ := switchedOn(t, 0, nil)
	adjust := b.adjust
	b.adjust = func(d *Deps) { adjust(d); d.Types[1].Emergency = true }
	b.env = append(b.env, "SBX_CONFIG="+b.home+"/c.yaml")
	for text, want := range map[string]bool{
		"limits: {max_sandboxes: 50}\n":                                                            false, // nobody has said whose they are
		"providers: {cloud: {type: cloud}}\n":                                                      false, // nobody knows how much is used
		"providers: {cloud: {type: cloud, max_sandboxes: 9, owned: {labels: {team: a}}}}\n":        false, // some are somebody else's
		"providers: {cloud: {type: cloud, max_sandboxes: 9}}\n":                                    false, // nobody has said whose they are
		"providers: {cloud: {type: cloud, max_sandboxes: 9, owned: all}}\n":                        true,
		"limits: {max_sandboxes: 50}\nproviders: {cloud: {type: cloud, owned: all}}\n":             true,
		"limits: {max_sandboxes: 50}\nproviders: {cloud: {type: cloud, owned: all}}\nuse: [local]": true, // SBX_PROVIDER goes before
	} {
		write(t, b.home+"/c.yaml", text)
		r := b.run(t, "cron print --layer usage")
		require.Equal(t, 0, r.code, r.stderr)
		if assert.Equal(t, want, strings.Contains(r.stdout, "cleanup --emergency --if-usage-above 80\\% --yes --config "+b.home+"/c.yaml --provider cloud --production cloud"), text) && want {
			assert.Contains(t, r.stdout, "\n#", "it is offered and not switched on")
		}
		r = b.run(t, "cron print --emergency")
		if want {
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Regexp(t, `(?m)^[0-4]-59/5 .* cleanup --emergency --if-usage-above`, r.stdout)
		} else {
			assert.Equal(t, 2, r.code, text)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
