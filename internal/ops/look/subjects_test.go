package look_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

func subjectOf(t *testing.T, all []check.Subject, provider string) check.Subject {
	t.Helper()
	i := slices.IndexFunc(all, func(s check.Subject) bool { return s.Provider == provider })
	require.GreaterOrEqual(t, i, 0, "%s is missing", provider)
	return all[i]
}

// TestReadsCarryTheFiguresOfEachProvider: what was seen is there, and what nobody saw is not known.
func TestReadsCarryTheFiguresOfEachProvider(t *testing.T) {
	t.Parallel()
	idle := fake.New(fake.Options{Name: "prod"})
	idle.Add(looping("aaaa0001"), looping("aaaa0002"))
	down := fake.New(fake.Options{Name: "dark"})
	down.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	site := opstest.NewSite(t, opstest.OneProfile, idle, down)
	watch := &opstest.Recorder{}
	env := site.Env(t)

	d, err := look.Diagnose(t.Context(), env, look.DiagnoseRequest{}, watch)
	require.NoError(t, err)
	v, err := look.Verify(t.Context(), env, look.VerifyRequest{}, watch)
	require.NoError(t, err)
	for name, all := range map[string][]check.Subject{"diagnose": d.Subjects, "verify": v.Subjects} {
		prod := subjectOf(t, all, "prod")
		require.NotNil(t, prod.Stuck, name)
		assert.EqualValues(t, 2, *prod.Stuck, name)
		assert.EqualValues(t, 2, *prod.Figures.Active, name)
		assert.NotZero(t, prod.Limits.StuckAge, name)
		for _, s := range all {
			if s.Provider == "dark" {
				assert.Nil(t, s.Stuck, "%s: a provider that was not listed has no count", name)
			}
		}
	}
}

// looping is a sandbox of half an hour with a busy processor and an old log.
func looping(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	at := seed.Sandbox.CreatedAt
	seed.Sandbox.LastActivityAt = at.Add(time.Minute)
	seed.Logs = []sandbox.LogLine{{At: at.Add(time.Minute), Stream: "stdout", Text: "planning step 1"}}
	var n atomic.Int64
	seed.Usage = func(now time.Time) sandbox.Usage {
		i := n.Add(1)
		return sandbox.Usage{
			At: now.Add(time.Duration(i) * time.Second), CPUSeconds: new(float64(i)), MemoryBytes: new(int64(100 * sandbox.MiB)),
			Operations: new(i * 40_000), PIDs: new(int64(3)), OOMKills: new(int64(0)), Source: "cgroup2 + /proc",
		}
	}
	return seed
}
