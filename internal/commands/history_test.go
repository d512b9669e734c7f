package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// seenEarlier stores a sample of so many active sandboxes for each hour, and has the fleet read them.
func (b *bench) seenEarlier(t *testing.T, profile string, active int64, since time.Duration) {
	t.Helper()
	st := b.kept(atNoon)
	for ago := since; ago >= 0; ago -= time.Hour {
		r := history.NewRecorder(func() time.Time { return noon.Add(-ago) })
		r.AddCounts(profile, map[sandbox.State]int64{sandbox.StateRunning: active})
		require.NoError(t, r.Flush(t.Context(), st))
	}
	b.history = storedHistory{st}
}

// storedHistory is a fleet.History that reads the counts of earlier looks from the store.
type storedHistory struct {
	st store.Store
}

func (storedHistory) OfSandbox(context.Context, sandbox.Sandbox) fleet.SandboxHistory {
	return fleet.SandboxHistory{}
}

func (h storedHistory) OfProfile(ctx context.Context, profile string) (sig triage.FleetSignals) {
	limits := triage.DefaultThresholds()
	sig.OverFor, _ = ops.ReadOverFor(ctx, h.st, profile, nil, limits, noon)
	return sig
}

func (storedHistory) EndingSince(context.Context, sandbox.Ref) time.Time { return time.Time{} }

func (storedHistory) ListingSeen(string, map[sandbox.State]int64, []sandbox.Sandbox, []string) {}

func (storedHistory) SandboxSeen(fleet.Observation) {}
