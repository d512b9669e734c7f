package ops_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/reconcile"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/opstest"
)

// TestReadOnlyIsEnforcedByOperations: no skin can forget it.
func TestReadOnlyIsEnforcedByOperations(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001")
	r := &opstest.Recorder{Answer: opstest.Yes}
	env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)
	env.ReadOnly = true
	word := []string{"prod/aaaa0001"}
	acts := map[string]func() error{
		"terminate": func() error {
			_, err := end.Terminate(t.Context(), env, end.TerminateRequest{Words: word, Typed: word, Yes: true}, r)
			return err
		},
		"cleanup": func() error {
			_, err := end.Cleanup(t.Context(), env, end.CleanupRequest{Rule: cleanup.Rule{Selector: selector.Selector{OlderThan: time.Minute}}, Yes: true}, r)
			return err
		},
		"reconcile --fix": func() error {
			_, err := end.Reconcile(t.Context(), env, end.ReconcileRequest{Rules: reconcile.Rules{}, Fix: true, Yes: true}, r)
			return err
		},
		"stop": func() error {
			act, err := launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"T-1"}})
			require.NoError(t, err, "a plan changes nothing")
			return r.Does(t, act, nil).Refused
		},
		"create": func() error { _, err := launch.Create(t.Context(), env, launch.CreateRequest{}, r); return err },
		"exec":   func() error { return launch.Exec(t.Context(), env, launch.ExecRequest{}) },
	}
	for name, act := range acts {
		err := act()
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%s: %v", name, err)
	}
	assert.Empty(t, opstest.Asked(p))
	_, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: word, Typed: word, Shown: true})
	require.NoError(t, err, "a plan changes nothing")
}

// TestAnActIsAboutAtMostWhatWasAllowed, whatever its verb.
func TestAnActIsAboutAtMostWhatWasAllowed(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001")
	r := &opstest.Recorder{}
	env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)
	words := []string{"prod/aaaa0001", "prod/bbbb0001"}
	act, err := end.PlanKeep(t.Context(), env, end.KeepRequest{Words: words, Typed: words})
	require.NoError(t, err)
	require.NoError(t, act.Do(t.Context(), r, ops.Allowed{Targets: act.Refs()[:1]}).Err)
	kept := opstest.ItemsOf[end.KeepResult](r)
	require.Len(t, kept, 1)
	assert.Equal(t, "aaaa0001", kept[0].Ref.ID)

	act, err = launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"t-none0001", "t-none0002"}})
	require.NoError(t, err)
	assert.Len(t, act.Do(t.Context(), r, ops.Allowed{Targets: act.Refs()[:1]}).Endings, 1)

	act = end.PlanEmergency(env, end.CleanupRequest{Profiles: []string{"prod"}}, []ops.PlannedEnd{{Ref: sandbox.Ref{ID: "prod"}}})
	done := act.Do(t.Context(), r, ops.Allowed{Targets: []sandbox.Ref{}, Production: []string{"prod"}})
	assert.Equal(t, fault.KindUsage, fault.KindOf(done.Err), "no profile was allowed: %v", done.Err)
	assert.Empty(t, opstest.Asked(p))
}
