package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

func TestRecordsOfTheStoreAreMarkedAndAdopted(t *testing.T) {
	t.Parallel()
	s := newScene()
	kept := store.Memory(s.clock)
	put := func(id string, state sandbox.State, ended time.Time) {
		require.NoError(t, kept.PutRecord(t.Context(), store.Record{
			Provider: "prod", ID: id, State: state, CreatedAt: noon.Add(-old), UpdatedAt: noon.Add(-time.Hour), EndedAt: ended,
		}))
	}
	put("a", sandbox.StateRunning, time.Time{})
	put("ghost", sandbox.StateRunning, time.Time{})
	put("leak", sandbox.StateTerminated, noon.Add(-time.Hour))
	put("parked", sandbox.StateStopped, time.Time{})
	put("unsure", sandbox.StateUnknown, time.Time{})
	for _, id := range []string{"a", "leak", "new", "unsure"} {
		s.box(id, old)
	}
	s.box("parked", old, state(sandbox.StateStopped))
	s.source = reconcile.FromStore(kept, "prod", reconcile.Owner{Who: "me", Host: "here", Now: s.clock})
	s.rules.Adopt = true
	plan := s.proved(t)
	assert.Equal(t, 1, plan.Settled, "what was stopped on purpose is stopped")
	assert.Equal(t, map[string]sandbox.Outcome{
		"ghost": sandbox.OutcomeVerified, "leak": sandbox.OutcomeVerified, "new": sandbox.OutcomeVerified,
	}, outcomes(s.fix(t, plan)))
	byID := map[string]store.Record{}
	records, err := kept.Records(t.Context(), "prod")
	require.NoError(t, err)
	for _, r := range records {
		byID[r.ID] = r
	}
	assert.Equal(t, sandbox.StateTerminated, byID["ghost"].State)
	assert.Contains(t, byID["ghost"].Reason, "ghost: recorded as running")
	assert.Equal(t, "me", byID["new"].Owner)
	assert.Equal(t, noon.Add(-old), byID["new"].CreatedAt)
	assert.Equal(t, 0, s.plan(t).CountNeedingAction())
}

func TestRecordsOfTheProviderComeThroughTheFleet(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	p.Add(running("a"))
	f := fleet.New([]fleet.Member{{Provider: p}, {Provider: fake.New(fake.Options{Name: "bare"}).Bare()}}, fleet.Options{})
	assert.True(t, f.HasRecords("prod"))
	assert.False(t, f.HasRecords("bare"))
	assert.False(t, f.RemovesRecords("prod"))
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(f.RemoveRecord(t.Context(), sandbox.Ref{Provider: "prod", ID: "a"})))

	source := reconcile.FromProvider(f, "prod")
	assert.True(t, source.Confirm, "records and listing may be one")
	assert.Nil(t, source.Mark)
	for r, err := range source.Read(t.Context()) {
		require.NoError(t, err)
		assert.Equal(t, "a", r.SandboxID)
	}
}

// dropping is a provider that drops records by the request that ends a sandbox.
type dropping struct {
	*fake.Provider

	dropped []string
}

func (d *dropping) RemoveRecord(_ context.Context, id string) error {
	d.dropped = append(d.dropped, id)
	return nil
}

// TestWhatReportsFiguresIsNoGhost: a read by id that finds none may be wrong.
func TestWhatReportsFiguresIsNoGhost(t *testing.T) {
	t.Parallel()
	p := &dropping{Provider: fake.New(fake.Options{Name: "prod"})}
	p.Add(running("a"))
	p.Break(fake.Fault{Op: fake.OpGet, Err: planted(fault.KindNotFound)})
	source := reconcile.FromProvider(fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{}), "prod")
	err := source.Mark(t.Context(), sandbox.Ref{Provider: "prod", ID: "a"}, "ghost")
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	assert.Empty(t, p.dropped)
	require.NoError(t, source.Mark(t.Context(), sandbox.Ref{Provider: "prod", ID: "ghost"}, "ghost"))
	assert.Equal(t, []string{"ghost"}, p.dropped)
}

func TestTasksThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	source := reconcile.FromTasks("tasks", noon, func(context.Context) ([]store.TaskRow, error) { return nil, planted(fault.KindAuth) })
	for r, err := range source.Read(t.Context()) {
		assert.Empty(t, r.SandboxID)
		assert.Equal(t, fault.KindAuth, fault.KindOf(err))
	}
	assert.Nil(t, source.Mark)
	assert.Nil(t, source.Adopt)
}

func running(id string) fake.Seed {
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning}}
}
