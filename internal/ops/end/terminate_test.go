package end_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/opstest"
)

// TestATerminateAsks: six by name and a production profile by bare words are two
// questions, and a no to either ends nothing.
func TestATerminateAsks(t *testing.T) {
	t.Parallel()
	words := []string{"aaaa0001", "bbbb0001", "cccc0001", "dddd0001", "eeee0001", "ffff0001"}
	for name, tc := range map[string]struct {
		refused   string // the answer that is not given; "" = all are
		unasked   bool
		questions int
		ended     int
	}{
		"both answered":       {questions: 2, ended: 6},
		"no to the count":     {refused: "6", questions: 1},
		"no to production":    {refused: "prod", questions: 2},
		"nobody can be asked": {unasked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := opstest.Prod(words...)
			r := &opstest.Recorder{Answer: func(q ops.Question) bool { return q.Word != tc.refused }}
			if tc.unasked {
				r.Answer = nil
			}
			env := opstest.NewSite(t, opstest.OneProfile+"production: [prod]\n", p).Env(t)
			act, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: words, Typed: words, Unattended: tc.unasked})
			result := r.Does(t, act, err)
			assert.Len(t, r.Questions, tc.questions)
			for _, q := range r.Questions {
				assert.NotEmpty(t, q.Objection)
				assert.Contains(t, q.Prompt, q.Word)
			}
			assert.Len(t, opstest.Asked(p), tc.ended)
			assert.Len(t, result.Endings, tc.ended)
			if tc.ended == 0 {
				assert.Equal(t, fault.KindRefused, fault.KindOf(result.Refused))
				return
			}
			require.NoError(t, result.Refused)
			require.NoError(t, result.Err)
			for id, outcome := range r.Outcomes() {
				assert.Equal(t, "verified", outcome, id)
			}
			h, err := env.Runs().Find(t.Context(), result.RunID)
			require.NoError(t, err)
			assert.Equal(t, runs.VerbTerminate, h.Begin.Verb)
			assert.Equal(t, 6, h.Counts().Verified)
		})
	}
}

// TestATerminationActIsFrozen: a sandbox that was recreated under a planned id stays, and so does one that is
// not an allowed target.
func TestATerminationActIsFrozen(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001", "cccc0001")
	r := &opstest.Recorder{}
	env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)
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
	assert.Equal(t, []string{"aaaa0001"}, opstest.Asked(p))
	assert.Equal(t, map[string]string{"aaaa0001": "verified", "bbbb0001": "changed"}, opstest.Outcomes(done.Endings))
}

// TestProductionIsNamed: the count allows no production profile.
func TestProductionIsNamed(t *testing.T) {
	t.Parallel()
	env := opstest.NewSite(t, opstest.OneProfile+"production: [prod]\n", opstest.Prod("aaaa0001", "bbbb0001")).Env(t)
	words := []string{"prod/aaaa0001", "prod/bbbb0001"}
	act, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: words, Typed: words, Shown: true})
	require.NoError(t, err)
	var asks []string
	for _, q := range act.CountQuestions(env) {
		asks = append(asks, q.Word)
	}
	assert.Equal(t, []string{"2", "prod"}, asks)
}
