package look_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

func silentBox(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Logs = []sandbox.LogLine{{At: seed.Sandbox.CreatedAt, Stream: "stdout", Text: "agent started"}}
	seed.Sandbox.LastActivityAt = seed.Sandbox.CreatedAt
	seed.Usage = func(now time.Time) sandbox.Usage {
		return sandbox.Usage{At: now, CPUSeconds: new(1.0), MemoryBytes: new(int64(9 << 20)), Operations: new(int64(3)), Source: "cgroup2"}
	}
	return seed
}

// workingLeak writes output, and its memory is full in a minute.
func workingLeak(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Sandbox.LastActivityAt = time.Now()
	var n atomic.Int64
	seed.Usage = func(now time.Time) sandbox.Usage {
		i := n.Add(1)
		return sandbox.Usage{
			At: now.Add(time.Duration(i-20) * 3 * time.Second), CPUSeconds: new(float64(i)), MemoryBytes: new((200 + 30*i) * sandbox.MiB), MemoryLimitBytes: new(int64(512 * sandbox.MiB)), Source: "cgroup2",
		}
	}
	return seed
}

// TestADiagnosisGroupsByCause: what is stuck and what is only suspected, each with its cause, and what is at work or
// young with none.
func TestADiagnosisGroupsByCause(t *testing.T) {
	t.Parallel()
	starting, failed, young := opstest.Seeds("start001")[0], opstest.Seeds("fail0001")[0], opstest.Seeds("young001")[0]
	starting.Sandbox.State = sandbox.StateProvisioning
	failed.Sandbox.State, failed.Sandbox.EndedAt = sandbox.StateFailed, time.Now().Add(-time.Minute)
	young.Sandbox.CreatedAt, young.Sandbox.StartedAt = time.Now(), time.Now()
	p := fake.New(fake.Options{Name: "prod"})
	p.Add(looping("loop0001"), silentBox("silent01"), workingLeak("leak0001"), starting, failed, young)
	result, err := look.Diagnose(t.Context(), opstest.NewSite(t, opstest.OneProfile, p).Env(t), look.DiagnoseRequest{}, &opstest.Recorder{})
	require.NoError(t, err)
	causes := func(groups []ops.CauseGroup) map[string]sandbox.Cause {
		all := map[string]sandbox.Cause{}
		for _, g := range groups {
			for _, ref := range g.Refs {
				all[ref.ID] = g.Cause
			}
		}
		return all
	}
	assert.Equal(t, map[string]sandbox.Cause{"loop0001": sandbox.CauseBusyLoop, "silent01": sandbox.CauseSilent, "start001": sandbox.CauseProvisioning}, causes(result.Stuck))
	assert.Equal(t, map[string]sandbox.Cause{"leak0001": sandbox.CauseLeak}, causes(result.Suspected))
	assert.Equal(t, sandbox.False, result.Verdict())
	assert.Equal(t, 6, result.Listed)
}
