package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// pick gives one of several by chance.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// randomly makes a random scene: some sandboxes, some records, some of both.
func randomly(r *rand.Rand) *scene {
	s := newScene()
	s.rules.Delete = pick(r, false, false, true)
	s.rules.Adopt = pick(r, false, false, true)
	for i := range 3 + r.IntN(12) {
		id := fmt.Sprintf("box%02d", i)
		if r.IntN(4) > 0 {
			s.box(id, pick(r, time.Second, 9*time.Minute, 11*time.Minute, old, old, old, -time.Hour), random(r)...)
		}
		for range pick(r, 0, 0, 1, 1, 1, 2) {
			rec := recorded(id, pick(r, is, isNot, mayBe))
			rec.KeepAlive = pick(r, false, false, true)
			rec.KeepFor = pick(r, 0, time.Minute, 5*time.Hour)
			rec.UpdatedAt = pick(r, time.Time{}, noon.Add(-time.Hour), noon)
			s.on(rec)
		}
		if r.IntN(12) == 0 {
			s.prod.Break(fake.Fault{Op: fake.OpGet, ID: id, Err: planted(pick(r, fault.KindNotFound, fault.KindUnavailable))})
		}
	}
	return s
}

func nothing(*sandbox.Sandbox) {}

func random(r *rand.Rand) []func(*sandbox.Sandbox) {
	return []func(*sandbox.Sandbox){
		state(pick(r, sandbox.StateRunning, sandbox.StateRunning, pick(r, sandbox.States()...))),
		pick(r, nothing, nothing, nothing, label(sandbox.LabelKeep, "true"), label("team", "others"), ageless),
		func(b *sandbox.Sandbox) { b.Activity = pick(r, is, isNot, isNot, mayBe) },
		func(b *sandbox.Sandbox) { b.LastActivityAt = pick(r, time.Time{}, noon, noon.Add(-time.Hour)) },
	}
}

// TestNothingThatARuleKeepsIsEverActedOn plans and fixes random scenes, and checks the
// requests to the provider against the rules alone.
func TestNothingThatARuleKeepsIsEverActedOn(t *testing.T) {
	t.Parallel()
	acted := 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := randomly(r)
		s.limits = reconcile.Limits{Limits: safety.Limits{MaxDelete: 1000, MaxFraction: 100}, RecordsAge: time.Hour}
		truth := map[string]sandbox.Sandbox{}
		first := s.plan(t)
		assert.Zero(t, s.asked())
		for _, row := range first.Rows {
			require.NotEqual(t, reconcile.ActTerminate, row.Action, "seed %d: %s was seen once", seed, row.Ref)
			truth[row.Ref.ID] = row.Box
		}
		plan := s.pass(pick(r, time.Minute, 5*time.Minute, time.Hour, time.Hour)).plan(t)
		near := s.now.Sub(noon) < s.rules.Grace
		for _, d := range s.fix(t, plan) {
			if d.Row.Action == reconcile.ActTerminate {
				acted++
				require.False(t, near, "seed %d: %s", seed, d.Ref)
				mayEnd(t, s, seed, d.Row, truth[d.Ref.ID])
			}
		}
		for _, call := range s.prod.Calls(fake.OpTerminate) {
			mayEnd(t, s, seed, only(t, plan, call.ID), truth[call.ID])
		}
		for _, ref := range s.marked {
			require.NotEqual(t, sandbox.StateRunning, truth[ref.ID].State, "seed %d: %s", seed, ref)
		}
	}
	assert.Greater(t, acted, 100, "chance hits what may be ended, too")
}

// mayEnd implements the rules once more, without the engine.
func mayEnd(t *testing.T, s *scene, seed uint64, row reconcile.Row, box sandbox.Sandbox) {
	t.Helper()
	say := fmt.Sprintf("seed %d: %+v", seed, row)
	require.NotEqual(t, "true", box.Labels[sandbox.LabelKeep], say)
	require.NotEqual(t, "others", box.Labels["team"], say)
	require.False(t, box.CreatedAt.IsZero(), say)
	require.Greater(t, s.now.Sub(box.CreatedAt), 10*time.Minute, say)
	require.False(t, box.State.Ended() || box.State == sandbox.StateUnknown || box.State == sandbox.StateTerminating, say)
	require.LessOrEqual(t, len(row.Records), 1, say)
	require.GreaterOrEqual(t, row.Observations, 2, say)
	require.NoError(t, row.Err, say)
	if len(row.Records) == 1 {
		require.Equal(t, isNot, row.Records[0].Live, say)
	}
	if row.Cause != reconcile.CauseLeak && box.State == sandbox.StateRunning {
		require.NotEqual(t, is, box.Activity, say)
	}
}
