package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// suspects is a scene with an orphan and a leak beside a correct sandbox.
func suspects() *scene {
	s := newScene()
	s.on(recorded("a", is), recorded("leak", isNot)).box("a", old)
	s.box("leak", old)
	s.box("orphan", old)
	return s
}

func actions(t *testing.T, p reconcile.Plan) map[string]reconcile.Action {
	t.Helper()
	return map[string]reconcile.Action{"leak": only(t, p, "leak").Action, "orphan": only(t, p, "orphan").Action}
}

func TestOneLookProvesNothing(t *testing.T) {
	t.Parallel()
	report := map[string]reconcile.Action{"leak": reconcile.ActReport, "orphan": reconcile.ActReport}
	end := map[string]reconcile.Action{"leak": reconcile.ActTerminate, "orphan": reconcile.ActTerminate}
	s := suspects()
	assert.Equal(t, report, actions(t, s.plan(t)))
	assert.Contains(t, only(t, s.plan(t), "orphan").Reason, "seen like this 1 of 2 times, at least 5m apart")
	assert.Equal(t, report, actions(t, s.pass(4*time.Minute).plan(t)), "too near to the first to count")
	assert.Equal(t, end, actions(t, s.pass(time.Minute).plan(t)))
	assert.Equal(t, 2, only(t, s.plan(t), "orphan").Observations)

	s = suspects()
	s.rules.Observations = 3
	assert.Equal(t, report, actions(t, s.proved(t)))
	assert.Equal(t, end, actions(t, s.pass(5*time.Minute).plan(t)))
}

func TestAPlanThatOnlyLooksWritesNothing(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.rules.Observe = false
	for range 5 {
		assert.Equal(t, reconcile.ActReport, only(t, s.pass(time.Hour).plan(t), "orphan").Action)
	}
	seen, err := s.seenCounts.SeenCounts(t.Context(), "reconcile orphan")
	require.NoError(t, err)
	assert.Empty(t, seen)

	s.rules.Observe = true
	s.proved(t)
	s.rules.Observe = false
	assert.Equal(t, reconcile.ActTerminate, only(t, s.plan(t), "orphan").Action, "it knows what others have seen")
}

func TestWhatIsNoSuspectAnyMoreBeginsAnew(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.plan(t)
	s.on(recorded("orphan", is))
	s.pass(5 * time.Minute).plan(t)
	s.records = s.records[:2]
	assert.Equal(t, 1, only(t, s.pass(5*time.Minute).plan(t), "orphan").Observations)
}

func TestALookThatFailsForgetsNothing(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.plan(t)
	s.prod.Break(fake.Fault{Op: fake.OpGet, ID: "orphan", Times: 1, Err: planted(fault.KindUnavailable)})
	assert.Equal(t, reconcile.CauseUnproved, only(t, s.pass(5*time.Minute).plan(t), "orphan").Cause)
	assert.Equal(t, 2, only(t, s.pass(5*time.Minute).plan(t), "orphan").Observations)
}

func TestAnotherGenerationIsSeenAnew(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.proved(t)
	s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.CreatedAt, b.StartedAt = s.now, s.now })
	row := only(t, s.pass(time.Hour).plan(t), "orphan")
	assert.Equal(t, 1, row.Observations)
	assert.Equal(t, reconcile.ActReport, row.Action)

	s.rules.Observe = false
	s.pass(time.Minute).prod.Change("orphan", func(b *sandbox.Sandbox) { b.CreatedAt, b.StartedAt = s.now, s.now })
	assert.Equal(t, 0, only(t, s.pass(time.Hour).plan(t), "orphan").Observations)
}

func TestAClockThatWentBackProvesNothing(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.proved(t)
	row := only(t, s.pass(-30*time.Minute).plan(t), "orphan")
	assert.Equal(t, 1, row.Observations)
	assert.Equal(t, reconcile.ActReport, row.Action)
}

func TestOtherProfilesSightingsStay(t *testing.T) {
	t.Parallel()
	s := suspects()
	_, err := s.seenCounts.CountSeen(t.Context(), "reconcile orphan", "prod2/x", noon, time.Minute)
	require.NoError(t, err)
	s.plan(t)
	seen, err := s.seenCounts.SeenCounts(t.Context(), "reconcile orphan")
	require.NoError(t, err)
	assert.Contains(t, seen, "prod2/x")
}

// deafSeenCounts fails to read or to write.
type deafSeenCounts struct {
	*store.InMemory

	read, write bool
}

func (d deafSeenCounts) SeenCounts(ctx context.Context, kind string) (map[string]store.SeenCount, error) {
	if d.read {
		return nil, errDisk
	}
	return d.InMemory.SeenCounts(ctx, kind)
}

func (d deafSeenCounts) CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (store.SeenCount, error) {
	if d.write {
		return store.SeenCount{Count: 9}, errDisk
	}
	return d.InMemory.CountSeen(ctx, kind, key, at, apart)
}

func TestSightingsThatFailProveNothing(t *testing.T) {
	t.Parallel()
	for _, broken := range []deafSeenCounts{{read: true}, {write: true}} {
		s := suspects()
		s.proved(t)
		s.seenCounts = deafSeenCounts{s.memory(t), broken.read, broken.write}
		plan := s.pass(time.Hour).plan(t)
		assert.Equal(t, reconcile.ActReport, only(t, plan, "orphan").Action)
		assert.Equal(t, reconcile.ActReport, only(t, plan, "leak").Action)
		require.Len(t, plan.Errors, 1)
		assert.ErrorIs(t, plan.Errors[0], errDisk)
	}
}

func (s *scene) memory(t *testing.T) *store.InMemory {
	t.Helper()
	m, ok := s.seenCounts.(*store.InMemory)
	require.True(t, ok)
	return m
}

// TestAGivenIDIsSeenAnewWhateverTheClockSays: the clock of this machine has jumped ahead,
// so that the first observation seems newer than the sandbox that came after it.
func TestAGivenIDIsSeenAnewWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.pass(10 * time.Minute).plan(t)
	born := s.now.Add(-9*time.Minute + time.Millisecond) // really a moment after that observation
	s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.CreatedAt, b.StartedAt = born, born })
	row := only(t, s.pass(5*time.Minute).plan(t), "orphan")
	assert.Equal(t, 1, row.Observations)
	assert.Equal(t, reconcile.ActReport, row.Action)
}

// TestAComputedStartIsOneStart: an API that gives an age in minutes shows another start in
// each read.
func TestAComputedStartIsOneStart(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.plan(t)
	s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.CreatedAt = b.CreatedAt.Add(40 * time.Second); b.StartedAt = b.CreatedAt })
	assert.Equal(t, 2, only(t, s.pass(5*time.Minute).plan(t), "orphan").Observations)
}

// TestStoppedOnesAreHeldAgainstASecondReadingToo: with --delete they end as well.
func TestStoppedOnesAreHeldAgainstASecondReadingToo(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.rules.Delete = true
	s.on(recorded("a", is)).box("a", old)
	s.box("orphan", old, state(sandbox.StateStopped))
	s.plan(t)
	s.failing = func(reading int) error {
		if reading == 4 { // the second reading of the second plan
			return planted(fault.KindUnavailable)
		}
		return nil
	}
	row := only(t, s.pass(5*time.Minute).plan(t), "orphan")
	assert.Equal(t, reconcile.ActReport, row.Action, row.Reason)
	assert.Equal(t, reconcile.CauseUnproved, row.Cause)
}

// TestALookThatStoodStillIsAsOldAsItBegan: two observations of one moment count as one,
// also where the second process was frozen before it counted its own.
func TestALookThatStoodStillIsAsOldAsItBegan(t *testing.T) {
	t.Parallel()
	s := suspects()
	s.plan(t)
	rows := s.records
	s.later = func(reading int) []reconcile.Record {
		if reading == 4 { // the second reading of the second plan, after the reads by id
			s.pass(6 * time.Minute)
		}
		return rows
	}
	row := only(t, s.pass(time.Second).plan(t), "orphan")
	assert.Equal(t, 1, row.Observations)
	assert.Equal(t, reconcile.ActReport, row.Action)
	assert.Equal(t, 2, only(t, s.pass(time.Second).plan(t), "orphan").Observations, "and the next one is six minutes after the first")
}

// TestARecordOfAnEarlierOneEndsNobodyWhoWorks: the record says ended and is updated, and
// the id was reused since.
func TestARecordOfAnEarlierOneEndsNobodyWhoWorks(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]time.Duration{"of the record": time.Second, "a minute after it": time.Minute, "long after it": 30 * time.Minute} {
		s := newScene()
		s.on(recorded("a", is), recorded("x", isNot)).box("a", old)
		s.box("x", 2*time.Hour-made)
		s.plan(t)
		s.pass(5 * time.Minute)
		for i := range s.records {
			s.records[i].UpdatedAt = s.now
		}
		s.prod.Change("x", func(b *sandbox.Sandbox) { b.LastActivityAt = s.now })
		assert.Equal(t, reconcile.ActReport, only(t, s.plan(t), "x").Action, name)
	}
}
