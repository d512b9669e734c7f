package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/task"
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
			p := prod(words...)
			r := &recorder{answer: func(q ops.Question) bool { return q.Word != tc.refused }}
			if tc.unasked {
				r.answer = nil
			}
			env := newSite(t, oneProfile+"production: [prod]\n", p).env(t, r)
			act, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: words, Typed: words, Unattended: tc.unasked})
			result := r.does(t, act, err)
			assert.Len(t, r.questions, tc.questions)
			for _, q := range r.questions {
				assert.NotEmpty(t, q.Objection)
				assert.Contains(t, q.Prompt, q.Word)
			}
			assert.Len(t, asked(p), tc.ended)
			assert.Len(t, result.Endings, tc.ended)
			if tc.ended == 0 {
				assert.Equal(t, fault.KindRefused, fault.KindOf(result.Refused))
				return
			}
			require.NoError(t, result.Refused)
			require.NoError(t, result.Err)
			for id, outcome := range r.outcomes() {
				assert.Equal(t, "verified", outcome, id)
			}
			h, err := env.Runs().Find(t.Context(), result.RunID)
			require.NoError(t, err)
			assert.Equal(t, runs.VerbTerminate, h.Begin.Verb)
			assert.Equal(t, 6, h.Counts().Verified)
		})
	}
}

// TestAStopWithoutACommandLine: one process runs a task, another stops it.
func TestAStopWithoutACommandLine(t *testing.T) {
	t.Parallel()
	p := prod()
	place := newSite(t, oneProfile, p)
	running := &recorder{}
	runner := place.env(t, running)
	c, err := runner.Config()
	require.NoError(t, err)
	order := launch.Request{Config: c, Key: "k-1", Sandbox: sandbox.Spec{Command: []string{"sh", "-c", "echo up; sleep 100000"}}}
	up := make(chan struct{})
	show := taskRecorder{output: func(sandbox.LogLine) { close(up) }}
	type launched struct {
		*launch.Launched
		err error
	}
	over := make(chan launched, 1)
	go func() {
		l, err := launch.Launch(t.Context(), runner, order, running, show)
		over <- launched{l, err}
	}()
	select {
	case <-up:
	case l := <-over:
		require.FailNow(t, "the task ended before it was stopped", "%+v %v", l.Launched, l.err)
	}

	r := &recorder{}
	env := place.env(t, r)
	act, err := launch.PlanStop(t.Context(), env, launch.StopRequest{Tasks: []string{"k-1", "k-1", "t-none"}})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(r.does(t, act, err).Err))
	stopped := itemsOf[launch.Stopped](r)
	require.Len(t, stopped, 2, "each word once")
	one, none := stopped[0], stopped[1]
	require.NoError(t, one.Err)
	assert.True(t, one.Forbidden)
	assert.True(t, one.Gone)
	assert.False(t, one.WasOver)
	assert.LessOrEqual(t, one.ForbiddenAfter, one.GoneAfter)
	assert.Equal(t, task.Stopped, one.Task.State)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(none.Err))
	assert.Equal(t, []launch.Forbidden{{Task: one.Task.ID, After: one.ForbiddenAfter}}, itemsOf[launch.Forbidden](r))
	assert.Len(t, r.items, 3)

	l := <-over
	require.NoError(t, l.err)
	assert.Equal(t, task.Stopped, l.Task.State)
	assert.Equal(t, one.Task.ID, l.Task.ID)
	assert.False(t, l.Task.VerifiedAt.IsZero())
	require.Len(t, l.Task.Attempts, 1)
	seen, err := p.Get(t.Context(), l.Task.Attempts[0].Sandbox)
	require.NoError(t, err)
	assert.True(t, seen.State.Ended(), seen.State)

	// Stopped once more, it was over before, and nothing is forbidden anew.
	twice := &recorder{}
	act, err = launch.PlanStop(t.Context(), place.env(t, twice), launch.StopRequest{Tasks: []string{one.Task.ID}})
	require.NoError(t, twice.does(t, act, err).Err)
	stopped = itemsOf[launch.Stopped](twice)
	assert.True(t, stopped[0].WasOver)
	assert.True(t, stopped[0].Gone)
	assert.Len(t, twice.items, 1)
	ended, errs := env.Runs().All(t.Context(), runs.VerbCleanup, 0)
	assert.Empty(t, errs)
	assert.Empty(t, ended, "a stop is no bulk run")
}
