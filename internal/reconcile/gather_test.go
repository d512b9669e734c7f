package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

func planted(kind fault.Kind) error { return fault.New(kind, "planted") }

// TestNothingIsConcludedFromHalfASide: an incomplete listing or reading leaves the profile
// out, at whichever page or reading it fails.
func TestNothingIsConcludedFromHalfASide(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*scene){
		"page 2 of the listing fails": func(s *scene) {
			s.prod.Break(fake.Fault{Op: fake.OpList, Page: 2, Err: planted(fault.KindUnavailable)})
		},
		"the listing fails": func(s *scene) { s.prod.Break(fake.Fault{Op: fake.OpList, Err: planted(fault.KindUnavailable)}) },
		"the records fail after the first row": func(s *scene) {
			s.failing = func(int) error { return planted(fault.KindUnavailable) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.prod = fake.New(fake.Options{Name: "prod", Now: s.clock, PageSize: 1})
			s.on(recorded("a", is), recorded("ghost", is)).box("a", old)
			s.box("orphan", old)
			s.plan(t)
			harm(s)
			plan := s.pass(time.Hour).plan(t)
			assert.Empty(t, plan.Rows)
			assert.Empty(t, plan.Sides)
			require.Len(t, plan.Errors, 1)
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(plan.Errors[0]))
			assert.Empty(t, s.fix(t, plan))
			assert.Equal(t, 0, s.asked())
		})
	}
}

func TestOneProfileIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	s := newScene()
	broken := fake.New(fake.Options{Name: "broken", Now: s.clock})
	broken.Break(fake.Fault{Op: fake.OpList, Err: planted(fault.KindAuth)})
	s.others = append(s.others, broken)
	s.on(recorded("a", is)).box("a", old)
	s.box("orphan", old)
	plan := s.proved(t)
	assert.Len(t, plan.Errors, 1)
	assert.Equal(t, reconcile.ActTerminate, only(t, plan, "orphan").Action)
}

func TestASecondReadingOfTheRecordsThatFailsProvesNothing(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.on(recorded("a", is), recorded("leak", isNot)).box("a", old)
	s.box("leak", old)
	s.box("orphan", old)
	s.plan(t)
	s.failing = func(reading int) error {
		if reading > 3 { // twice for the first plan, once for this one
			return planted(fault.KindUnavailable)
		}
		return nil
	}
	plan := s.pass(time.Hour).plan(t)
	for _, id := range []string{"leak", "orphan"} {
		row := only(t, plan, id)
		assert.Equal(t, reconcile.CauseUnproved, row.Cause)
		assert.Equal(t, reconcile.ActReport, row.Action)
	}
	assert.Len(t, plan.Errors, 2)
}

func TestEmptyRecordsBesideSandboxesAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.box("a", old)
	plan := s.plan(t)
	assert.Empty(t, plan.Rows)
	require.Len(t, plan.Errors, 1)
	assert.Equal(t, fault.KindRefused, fault.KindOf(plan.Errors[0]))
	assert.Contains(t, fault.HintOf(plan.Errors[0]), "do not prove")

	s.rules.Adopt = true // they may only be adopted
	plan = s.plan(t)
	assert.Empty(t, plan.Errors)
	assert.Equal(t, reconcile.ActAdopt, only(t, plan, "a").Action)
}

func TestNothingOnBothSidesIsInOrder(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.box("a", old, state(sandbox.StateTerminated))
	plan := s.plan(t)
	assert.Empty(t, plan.Errors)
	assert.Empty(t, plan.Rows)
}

func TestAProfileWithoutRecordsIsUnsupported(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.source.Read = nil
	plan := s.plan(t)
	require.Len(t, plan.Errors, 1)
	assert.Equal(t, fault.KindUnsupported, fault.KindOf(plan.Errors[0]))
}

func TestRecordsMayGoByNames(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.on(recorded("worker", is)).box("a", old, worker)
	plan := s.proved(t)
	row := only(t, plan, "a")
	assert.Equal(t, reconcile.Both, row.Class)
	assert.Len(t, plan.Rows, 1)

	s.box("b", old, worker) // a name of two sandboxes identifies neither
	plan = s.pass(time.Hour).proved(t)
	assert.Equal(t, reconcile.RealOnly, only(t, plan, "a").Class)
	assert.Equal(t, reconcile.RealOnly, only(t, plan, "b").Class)
	assert.Equal(t, reconcile.RecordOnly, only(t, plan, "worker").Class)
}

func TestAReadByIDMayShowThatTwoAreOne(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.called = map[string]string{"omoios-1": "a"}
	s.on(recorded("omoios-1", is)).box("a", old)
	plan := s.proved(t)
	assert.Len(t, plan.Rows, 1)
	assert.Equal(t, reconcile.CauseAgrees, only(t, plan, "a").Cause)

	s = newScene() // the listing contains neither, and both records mean one sandbox
	s.called = map[string]string{"omoios-1": "hidden", "omoios-2": "hidden"}
	s.on(recorded("b", is), recorded("omoios-1", is), recorded("omoios-2", is)).box("b", old)
	s.prod = fake.New(fake.Options{Name: "prod", Now: s.clock, PageSize: 1})
	s.box("b", old)
	s.box("hidden", old)
	s.prod.Break(fake.Fault{Op: fake.OpList, Page: 2, Skip: true})
	plan = s.plan(t)
	assert.Len(t, plan.Rows, 2)
	assert.Equal(t, reconcile.CauseDuplicate, only(t, plan, "hidden").Cause)
}

// TestConfirmHoldsAListAgainstItself: where the records may be the listing itself, the read
// by id is the other side.
func TestConfirmHoldsAListAgainstItself(t *testing.T) {
	t.Parallel()
	for _, confirm := range []bool{false, true} {
		s := newScene()
		s.source.Confirm = confirm
		s.on(recorded("a", is), recorded("b", is)).box("a", old)
		s.box("b", old)
		s.prod.Break(fake.Fault{Op: fake.OpGet, ID: "b", Err: planted(fault.KindNotFound)})
		row := only(t, s.plan(t), "b")
		if confirm {
			assert.Equal(t, reconcile.CauseGhost, row.Cause)
			assert.Equal(t, reconcile.ActMark, row.Action)
		} else {
			assert.Equal(t, reconcile.CauseAgrees, row.Cause)
		}
	}
}

func TestASourceBesideTheProviderMayExcuseAnOrphan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		idle   time.Duration
		broken error
		want   reconcile.Action
	}{
		"it works":       {time.Second, nil, reconcile.ActReport},
		"it is silent":   {time.Hour, nil, reconcile.ActTerminate},
		"nobody can say": {time.Hour, planted(fault.KindUnavailable), reconcile.ActReport},
		"it has no word": {time.Hour, planted(fault.KindNotFound), reconcile.ActTerminate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.prod = fake.New(fake.Options{Name: "prod", Now: s.clock})
			s.on(recorded("a", is)).box("a", old)
			s.box("orphan", old)
			if c.broken != nil {
				s.prod.Break(fake.Fault{Op: fake.OpActivity, Err: c.broken})
			}
			s.plan(t)
			s.pass(time.Hour)
			s.prod.Change("orphan", func(b *sandbox.Sandbox) { b.LastActivityAt = s.now.Add(-c.idle) })
			assert.Equal(t, c.want, only(t, s.plan(t), "orphan").Action)
		})
	}
}

func TestRulesThatWouldProveTooLittleAreRefused(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*reconcile.Rules){
		"one look":         func(r *reconcile.Rules) { r.Observations = 1 },
		"no grace":         func(r *reconcile.Rules) { r.Grace = 0 },
		"no create grace":  func(r *reconcile.Rules) { r.CreateGrace = 0 },
		"nobody protects":  func(r *reconcile.Rules) { r.Protected = nil },
		"nobody owns":      func(r *reconcile.Rules) { r.Owned = nil },
		"nothing measures": func(r *reconcile.Rules) { r.Thresholds = nil },
	} {
		s := newScene()
		e := *s.engine(t)
		edit(&e.Rules)
		_, err := reconcile.New(e)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
	}
}

var _ providers.Provider = (*fake.Provider)(nil)
