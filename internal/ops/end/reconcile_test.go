package end_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/opstest"
)

// record has the store of a site say that sandboxes run since an hour.
func record(t *testing.T, s *opstest.Site, ids ...string) {
	t.Helper()
	kept := s.Store(t)
	at := time.Now().Add(-time.Hour)
	for _, id := range ids {
		require.NoError(t, kept.PutRecord(t.Context(), store.Record{Provider: "prod", ID: id, State: sandbox.StateRunning, CreatedAt: at, UpdatedAt: at}))
	}
	require.NoError(t, kept.Close())
}

func usualRules(observe bool) reconcile.Rules {
	return reconcile.Rules{
		Observations: reconcile.DefaultObservations, Grace: reconcile.DefaultGrace, CreateGrace: reconcile.DefaultCreateGrace,
		RecordsAge: reconcile.DefaultRecordsAge, Observe: observe,
	}
}

// TestAReconcileAsks: a record of a sandbox that is not there is marked after an
// answer, and not without one.
func TestAReconcileAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer    func(ops.Question) bool
		questions int
		marked    bool
	}{
		"answered yes":        {answer: opstest.Yes, questions: 1, marked: true},
		"answered no":         {answer: func(ops.Question) bool { return false }, questions: 1},
		"nobody can be asked": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := opstest.NewSite(t, opstest.OneProfile, opstest.Prod("live0001"))
			record(t, place, "live0001", "young001", "label001", "gone0001")
			r := &opstest.Recorder{Answer: tc.answer}
			req := end.ReconcileRequest{Records: "store", Fix: true, Rules: usualRules(true)}
			env := place.Env(t)
			_, err := end.Reconcile(t.Context(), env, req, r)
			assert.Equal(t, fault.KindRefused, fault.KindOf(err), "nothing has allowed it")
			req.Fix, req.Rules.Observe = false, false
			planned, err := end.Reconcile(t.Context(), env, req, r)
			require.NoError(t, err)
			result := r.Does(t, planned.Act(), nil)
			assert.Len(t, r.Questions, tc.questions)
			done := opstest.ItemsOf[reconcile.Done](r)
			if !tc.marked {
				assert.Equal(t, fault.KindRefused, fault.KindOf(result.Refused))
				assert.Empty(t, done)
				return
			}
			require.NoError(t, result.Err)
			var refs []string
			for _, d := range done {
				refs = append(refs, d.Ref.ID+" "+string(d.Row.Action))
			}
			assert.Equal(t, []string{"gone0001 mark_terminated"}, refs)
			list, errs := env.Runs().All(t.Context(), runs.VerbReconcile, 0)
			assert.Empty(t, errs)
			require.Len(t, list, 1)
			require.NotNil(t, list[0].Conclusion)
			assert.Equal(t, 0, list[0].Conclusion.ExitCode)
		})
	}
}

// TestAComparisonCarriesItsCounts: one observation proves that a record has no sandbox, and counts.
func TestAComparisonCarriesItsCounts(t *testing.T) {
	t.Parallel()
	place := opstest.NewSite(t, opstest.OneProfile, opstest.Prod("live0001"))
	record(t, place, "live0001", "young001", "label001", "gone0001")
	watch := &opstest.Recorder{}
	r, err := end.Reconcile(t.Context(), place.Env(t), end.ReconcileRequest{Rules: usualRules(false), Records: "store"}, watch)
	require.NoError(t, err)
	at := slices.IndexFunc(r.Subjects, func(s check.Subject) bool { return s.Provider == "prod" })
	require.GreaterOrEqual(t, at, 0)
	seen := r.Subjects[at]
	require.NotNil(t, seen.Corrupt)
	assert.EqualValues(t, 1, *seen.Corrupt)
	assert.EqualValues(t, 0, *seen.Orphans)
	assert.Nil(t, seen.Stuck, "nobody has looked")
}
