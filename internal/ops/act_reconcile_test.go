package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// TestAReconcileAsks: a record of a sandbox that is not there is marked after an
// answer, and not without one.
func TestAReconcileAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer    func(ops.Question) bool
		questions int
		marked    bool
	}{
		"answered yes":        {answer: yes, questions: 1, marked: true},
		"answered no":         {answer: func(ops.Question) bool { return false }, questions: 1},
		"nobody can be asked": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := newSite(t, oneProfile, prod("live0001"))
			kept := place.store(t)
			at := time.Now().Add(-time.Hour)
			for _, id := range []string{"live0001", "young001", "label001", "gone0001"} {
				require.NoError(t, kept.PutRecord(t.Context(), store.Record{Provider: "prod", ID: id, State: sandbox.StateRunning, CreatedAt: at, UpdatedAt: at}))
			}
			require.NoError(t, kept.Close())
			r := &recorder{answer: tc.answer}
			req := end.ReconcileRequest{Records: "store", Fix: true, Rules: reconcile.Rules{
				Observations: reconcile.DefaultObservations, Grace: reconcile.DefaultGrace, CreateGrace: reconcile.DefaultCreateGrace,
				RecordsAge: reconcile.DefaultRecordsAge, Observe: true,
			}}
			env := place.env(t, r)
			_, err := end.Reconcile(t.Context(), env, req, r)
			assert.Equal(t, fault.KindRefused, fault.KindOf(err), "nothing has allowed it")
			req.Fix, req.Rules.Observe = false, false
			planned, err := end.Reconcile(t.Context(), env, req, r)
			require.NoError(t, err)
			result := r.does(t, planned.Act(), nil)
			assert.Len(t, r.questions, tc.questions)
			done := itemsOf[reconcile.Done](r)
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
			require.NotNil(t, list[0].End)
			assert.Equal(t, 0, list[0].End.ExitCode)
		})
	}
}
