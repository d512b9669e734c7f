package commands

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// halt ends the context before anything is asked.
func halt(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// haltedAfter ends the context after a while.
func haltedAfter(t *testing.T, d time.Duration) func(context.Context) context.Context {
	t.Helper()
	return func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeoutCause(ctx, d, context.Canceled)
		t.Cleanup(cancel)
		return ctx
	}
}

// growing gives samples a second apart: so much of a core, so many MiB and
// operations more in each.
func growing(cores float64, mib, operations int64) func(time.Time) sandbox.Usage {
	var n atomic.Int64
	return func(time.Time) sandbox.Usage {
		i := n.Add(1)
		return sandbox.Usage{
			At: noon.Add(time.Duration(i) * time.Second), CPUSeconds: new(float64(i) * cores),
			MemoryBytes: new((100 + i*mib) * sandbox.MiB), MemoryLimitBytes: new(int64(256 * sandbox.MiB)),
			Operations: new(i * operations), PIDs: new(int64(3)), OOMKills: new(int64(0)), Source: "cgroup2 + /proc",
		}
	}
}

// using is a running sandbox with such a usage.
func using(id string, age time.Duration, usage func(time.Time) sandbox.Usage) fake.Seed {
	seed := running(id, age)
	seed.Usage = usage
	return seed
}

// loop is a stuck sandbox of twenty minutes: a full core, an old log, text that
// a terminal would obey.
func loop() fake.Seed {
	seed := using("loop0001", 20*time.Minute, growing(1, 0, 40_000))
	seed.Sandbox.Name, seed.Sandbox.AgentType = "crawler\x1b[2J", "coder"
	seed.Sandbox.Labels = map[string]string{"team": "ag\x1b[31ments"}
	seed.Sandbox.Limits = sandbox.Limits{
		MemoryBytes: new(int64(256 * sandbox.MiB)), CPU: new(2.0), PIDs: new(int64(512)),
		Enforcement: sandbox.EnforcementCgroup2, Isolation: "user and pid namespace",
	}
	seed.Sandbox.LastActivityAt = noon.Add(-19 * time.Minute)
	seed.Logs = []sandbox.LogLine{
		{At: noon.Add(-30 * time.Hour), Stream: "stdout", Text: "planning step 1"},
		{At: noon.Add(-19 * time.Minute), Stream: "stderr", Text: "RangeError: Maximum call stack exceeded, and a line that is longer than a terminal \x1b]0;pwned\x07"},
	}
	return seed
}

// oomed is one that the kernel killed a minute ago.
func oomed() fake.Seed {
	return fake.Seed{
		Sandbox: sandbox.Sandbox{
			ID: "oomd0001", State: sandbox.StateFailed, CreatedAt: noon.Add(-time.Hour), StartedAt: noon.Add(-time.Hour), EndedAt: noon.Add(-time.Minute), TaskID: "t-9",
			Limits: sandbox.Limits{MemoryBytes: new(int64(64 * sandbox.MiB)), Enforcement: sandbox.EnforcementWatch},
			Exit: &sandbox.Exit{
				Code: new(137), Raw: "signal: 9", Signal: "SIGKILL", Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain,
				Evidence: []sandbox.Evidence{{What: "oom_kill", Value: "1", Source: "memory.events", At: noon.Add(-time.Minute)}},
			},
		},
		Usage: func(time.Time) sandbox.Usage {
			return sandbox.Usage{At: noon.Add(-time.Minute), MemoryPeakBytes: new(int64(64 * sandbox.MiB)), CPUSeconds: new(12.0), OOMKills: new(int64(1)), Source: "record"}
		},
	}
}

// calm is a young one that works.
func calm() fake.Seed {
	seed := using("calm0001", 2*time.Minute, growing(0.3, 0, 20))
	seed.Sandbox.LastActivityAt = noon.Add(-2 * time.Second)
	seed.Logs = []sandbox.LogLine{{At: noon.Add(-2 * time.Second), Stream: "stdout", Text: "step 7 done"}}
	return seed
}
