package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
)

// TestATerminationActIsFrozen: a sandbox that was recreated under a planned id stays, and so does one that is
// not an allowed target.
func TestATerminationActIsFrozen(t *testing.T) {
	t.Parallel()
	p := prod("aaaa0001", "bbbb0001", "cccc0001")
	r := &recorder{}
	env := newSite(t, oneProfile, p).env(t, r)
	words := []string{"prod/aaaa0001", "prod/bbbb0001", "prod/cccc0001", "prod/label001"}
	act, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: words, Typed: words, Shown: true})
	require.NoError(t, err)
	require.NoError(t, act.Failed)
	require.Len(t, act.Targets, 3)
	require.Len(t, act.Kept, 1)
	assert.Contains(t, act.Kept[0].Reason, sandbox.LabelKeep)
	p.Change("bbbb0001", func(s *sandbox.Sandbox) { s.CreatedAt = time.Now() }) // another one has the id now
	done := act.Do(t.Context(), r, ops.Allowed{Targets: []sandbox.Ref{act.Targets[0].Ref, act.Targets[1].Ref}})
	require.Error(t, done.Err)
	assert.Equal(t, []string{"aaaa0001"}, asked(p))
	assert.Equal(t, map[string]string{"aaaa0001": "verified", "bbbb0001": "changed"}, outcomes(done.Endings))
}

// TestProductionIsNamed: the count allows no production profile.
func TestProductionIsNamed(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	env := newSite(t, oneProfile+"production: [prod]\n", prod("aaaa0001", "bbbb0001")).env(t, r)
	words := []string{"prod/aaaa0001", "prod/bbbb0001"}
	act, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: words, Typed: words, Shown: true})
	require.NoError(t, err)
	var asks []string
	for _, q := range act.CountQuestions(env) {
		asks = append(asks, q.Word)
	}
	assert.Equal(t, []string{"2", "prod"}, asks)
}

// TestReadOnlyIsEnforcedByOperations: no skin can forget it.
func TestReadOnlyIsEnforcedByOperations(t *testing.T) {
	t.Parallel()
	p := prod("aaaa0001")
	r := &recorder{answer: yes}
	env := newSite(t, oneProfile, p).env(t, r)
	env.ReadOnly = true
	word := []string{"prod/aaaa0001"}
	req := tenMinutes()
	req.Yes = true
	acts := map[string]func() error{
		"terminate": func() error {
			_, err := end.Terminate(t.Context(), env, end.TerminateRequest{Words: word, Typed: word, Yes: true}, r)
			return err
		},
		"cleanup": func() error { _, err := end.Cleanup(t.Context(), env, req, r); return err },
		"reconcile --fix": func() error {
			_, err := end.Reconcile(t.Context(), env, end.ReconcileRequest{Rules: reconcile.Rules{}, Fix: true, Yes: true}, r)
			return err
		},
		"stop": func() error {
			act, err := launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"T-1"}})
			require.NoError(t, err, "a plan changes nothing")
			return r.does(t, act, nil).Refused
		},
		"create": func() error { _, err := launch.Create(t.Context(), env, launch.CreateRequest{}, r); return err },
		"exec":   func() error { return launch.Exec(t.Context(), env, launch.ExecRequest{}) },
	}
	for name, act := range acts {
		err := act()
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", name, err)
	}
	assert.Empty(t, asked(p))
	_, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: word, Typed: word, Shown: true})
	require.NoError(t, err, "a plan changes nothing")
}

// TestAnActIsAboutAtMostWhatWasAllowed, whatever its verb.
func TestAnActIsAboutAtMostWhatWasAllowed(t *testing.T) {
	t.Parallel()
	p := prod("aaaa0001", "bbbb0001")
	r := &recorder{}
	env := newSite(t, oneProfile, p).env(t, r)
	words := []string{"prod/aaaa0001", "prod/bbbb0001"}
	act, err := end.PlanKeep(t.Context(), env, end.KeepRequest{Words: words, Typed: words})
	require.NoError(t, err)
	require.NoError(t, act.Do(t.Context(), r, ops.Allowed{Targets: act.Refs()[:1]}).Err)
	kept := itemsOf[end.KeepResult](r)
	require.Len(t, kept, 1)
	assert.Equal(t, "aaaa0001", kept[0].Ref.ID)

	act, err = launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"t-none0001", "t-none0002"}})
	require.NoError(t, err)
	assert.Len(t, act.Do(t.Context(), r, ops.Allowed{Targets: act.Refs()[:1]}).Endings, 1)

	act = end.PlanEmergency(env, end.CleanupRequest{Profiles: []string{"prod"}}, []ops.PlannedEnd{{Ref: sandbox.Ref{ID: "prod"}}})
	done := act.Do(t.Context(), r, ops.Allowed{Targets: []sandbox.Ref{}, Production: []string{"prod"}})
	assert.Equal(t, fault.KindUsage, fault.KindOf(done.Err), "no profile was allowed: %v", done.Err)
	assert.Empty(t, asked(p))
}
