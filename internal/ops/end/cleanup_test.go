package end_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// tenMinutes is a cleanup of what is older than ten minutes, whatever it does.
func tenMinutes() end.CleanupRequest {
	return end.CleanupRequest{Rule: cleanup.Rule{Selector: selector.Selector{OlderThan: 10 * time.Minute}, IgnoreActivity: true}, MaxPlanAge: time.Hour}
}

// journalOf reads the one run that a site has on record.
func journalOf(t *testing.T, env *ops.Env, run string) runs.History {
	t.Helper()
	list, errs := env.Runs().All(t.Context(), runs.VerbCleanup, 0)
	require.Empty(t, errs)
	require.Len(t, list, 1)
	require.Equal(t, run, list[0].RunID)
	disk, err := env.Journals()
	require.NoError(t, err)
	h, log, err := runs.ScanRun(disk, run)
	require.NoError(t, err)
	assert.Empty(t, log.Broken)
	assert.Equal(t, list[0].Counts(), h.Counts())
	return h
}

// TestACleanupWithoutACommandLine: plan, question, act, verify, journal.
func TestACleanupWithoutACommandLine(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001", "cccc0001")
	r := &opstest.Recorder{Answer: opstest.Yes}
	env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)

	planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
	require.NoError(t, err)
	require.NoError(t, planned.Verdict)
	require.NoError(t, cleanup.Refusal(planned.Guards))
	plan := planned.Survey.Plan(planned.RunID)
	require.Len(t, plan.Items, 3)
	kept := map[string]cleanup.KeepReason{}
	for _, j := range planned.Survey.Kept {
		kept[j.Sandbox.ID] = j.KeepReason
	}
	assert.Equal(t, map[string]cleanup.KeepReason{"young001": cleanup.KeepNotSelected, "label001": cleanup.KeepProtected}, kept)
	assert.Empty(t, opstest.Asked(p), "a plan does nothing")
	assert.Empty(t, r.Items)

	result := r.Does(t, planned.Act(), nil)
	require.NoError(t, result.Err)
	require.Len(t, r.Questions, 1)
	assert.Equal(t, "3", r.Questions[0].Word)
	assert.ElementsMatch(t, []string{"aaaa0001", "bbbb0001", "cccc0001"}, opstest.Asked(p))
	want := map[string]string{"aaaa0001": "verified", "bbbb0001": "verified", "cccc0001": "verified"}
	assert.Equal(t, want, opstest.Outcomes(result.Endings))
	assert.Equal(t, want, r.Outcomes(), "each was told as it was known")
	assert.Equal(t, []ops.RunStarted{{RunID: planned.RunID}}, opstest.ItemsOf[ops.RunStarted](r))
	assert.IsType(t, ops.RunStarted{}, r.Items[0])
	assert.Empty(t, r.Warnings)
	assert.NotEmpty(t, r.Labels)
	assert.Zero(t, r.Open, "every progress is done")

	h := journalOf(t, env, planned.RunID)
	assert.Equal(t, runs.VerbCleanup, h.Begin.Verb)
	assert.Len(t, h.Intents, 3)
	require.NotNil(t, h.Conclusion)
	assert.Equal(t, 0, h.Conclusion.ExitCode)
	assert.Equal(t, 3, h.Counts().Verified)
	assert.Empty(t, h.Open())
}

// TestACleanupThatNobodyAllows: --yes or an answer is what allows a run, whoever drives it.
func TestACleanupThatNobodyAllows(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(ops.Question) bool
		asked  int
	}{
		"nobody there":              {},
		"answered no":               {answer: func(ops.Question) bool { return false }, asked: 1},
		"what it asks is the count": {answer: func(q ops.Question) bool { return q.Word != "2" }, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := opstest.Prod("aaaa0001", "bbbb0001")
			r := &opstest.Recorder{Answer: tc.answer}
			env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)
			planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
			require.NoError(t, err)
			assert.Equal(t, fault.KindRefused, fault.KindOf(r.Does(t, planned.Act(), nil).Refused))
			assert.Len(t, r.Questions, tc.asked)
			listed := tenMinutes()
			listed.Plan = new(planned.Plan())
			act, err := end.PlanListed(t.Context(), env, listed, r)
			refused := r.Does(t, act, err).Refused
			assert.Equal(t, fault.KindRefused, fault.KindOf(refused))
			assert.NotEmpty(t, fault.HintOf(refused))
			result, err := end.Cleanup(t.Context(), env, tenMinutes(), r)
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			require.NotNil(t, result, "it has figures all the same")
			assert.Empty(t, opstest.Asked(p))
			assert.Empty(t, opstest.ItemsOf[ops.RunStarted](r))
		})
	}
}

// TestOnlyAPlanOfAFileGrowsOld: one that somebody was asked about is judged anew.
func TestOnlyAPlanOfAFileGrowsOld(t *testing.T) {
	t.Parallel()
	r := &opstest.Recorder{}
	env := opstest.NewSite(t, opstest.OneProfile, opstest.Prod("aaaa0001")).Env(t)
	planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
	require.NoError(t, err)
	plan := planned.Survey.Plan(planned.RunID)
	plan.MadeAt = plan.MadeAt.Add(-2 * time.Hour)
	req := tenMinutes()
	req.Plan, req.PlanFromFile, req.Yes = &plan, true, true
	_, err = end.Cleanup(t.Context(), env, req, r)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	req.PlanFromFile = false
	result, err := end.Cleanup(t.Context(), env, req, r)
	require.NoError(t, err)
	assert.Len(t, result.Endings, 1)
}

// TestACleanupThatFailsHasFigures: who watches the figures must not see those of the last
// good run.
func TestACleanupThatFailsHasFigures(t *testing.T) {
	t.Parallel()
	r := &opstest.Recorder{}
	env := opstest.NewSite(t, opstest.OneProfile, opstest.Prod("aaaa0001")).Env(t)
	env.Journals = func() (journal.Disk, error) { return nil, errors.New("the disk is full") }
	req := tenMinutes()
	req.Yes, req.Textfile = true, filepath.Join(t.TempDir(), "sbx.prom")
	result, err := end.Cleanup(t.Context(), env, req, r)
	require.ErrorContains(t, err, "the disk is full")
	require.NotNil(t, result)
	assert.Empty(t, opstest.ItemsOf[ops.RunStarted](r))
	figures, err := os.ReadFile(req.Textfile)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^sbx_cleanup_exit_code(\{.*\})? 1$`, string(figures))
	assert.NotEmpty(t, result.RunID)
}

// TestABulkActEndsAtMostItsPlan: what was confirmed is a ceiling.
func TestABulkActEndsAtMostItsPlan(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001")
	r := &opstest.Recorder{}
	env := opstest.NewSite(t, opstest.OneProfile, p).Env(t)
	planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
	require.NoError(t, err)
	act := planned.Act()
	require.NoError(t, act.Refused)
	questions := act.CountQuestions(env)
	require.Len(t, questions, 1)
	assert.Equal(t, "2", questions[0].Word)
	assert.Len(t, questions[0].Targets, 2)
	p.Add(opstest.Seeds("late0001")...) // while the question stands
	done := act.Do(t.Context(), r, ops.Allowed{})
	assert.Equal(t, fault.KindRefused, fault.KindOf(done.Refused), "nobody was asked")
	assert.Empty(t, opstest.Asked(p))
	done = act.Do(t.Context(), r, ops.Allowed{Asked: true})
	require.NoError(t, done.Err)
	assert.Len(t, done.Endings, 2)
	assert.ElementsMatch(t, []string{"aaaa0001", "bbbb0001"}, opstest.Asked(p))
}

// TestACleanupIsStoppedAndResumed: the context ends when half is done; another process
// goes on by the journal and asks for nothing twice that has ended.
func TestACleanupIsStoppedAndResumed(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("done0001", "done0002", "hung0001", "read0001")
	p.Break(
		fake.Fault{Op: fake.OpTerminate, ID: "hung0001", Hang: true}, // asked, and its answer is not known
		fake.Fault{Op: fake.OpGet, ID: "read0001", Hang: true},       // not asked: the read before hangs
	)
	place := opstest.NewSite(t, opstest.OneProfile, p)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	r := &opstest.Recorder{}
	r.OnItem = func(any) {
		if len(r.Endings()) == 2 {
			assert.Eventually(t, func() bool { return slices.Contains(opstest.Asked(p), "hung0001") }, time.Minute, time.Millisecond)
			cancel(fault.New(fault.KindCanceled, "the operator has left"))
		}
	}
	env := place.Env(t)
	req := tenMinutes()
	req.Yes = true
	result, err := end.Cleanup(ctx, env, req, r)
	require.NoError(t, err)
	assert.Equal(t, fault.KindCanceled, fault.KindOf(result.Verdict))
	got := r.Outcomes()
	assert.Equal(t, "verified", got["done0001"])
	assert.Equal(t, "verified", got["done0002"])
	assert.Equal(t, "not_attempted", got["read0001"])
	assert.Len(t, got, 4, "each has an outcome: %v", got)
	h := journalOf(t, env, result.RunID)
	require.NotNil(t, h.Conclusion)
	assert.Equal(t, 130, h.Conclusion.ExitCode)
	assert.Len(t, h.Open(), 2)
	require.True(t, h.Resumable())

	p.Mend()
	again := &opstest.Recorder{Answer: opstest.Yes}
	env = place.Env(t)
	act, err := end.PlanListed(t.Context(), env, end.CleanupRequest{Resume: result.RunID}, again)
	resumed := again.Does(t, act, err)
	require.NoError(t, resumed.Err)
	assert.Equal(t, result.RunID, resumed.RunID)
	require.Len(t, again.Questions, 1)
	assert.Equal(t, "2", again.Questions[0].Word)
	all := map[string]string{"done0001": "verified", "done0002": "verified", "hung0001": "verified", "read0001": "verified"}
	assert.Equal(t, all, again.Outcomes())
	assert.ElementsMatch(t, []string{"done0001", "done0002", "hung0001", "hung0001", "read0001"}, opstest.Asked(p))
	h = journalOf(t, env, result.RunID)
	require.NotNil(t, h.Conclusion)
	assert.Equal(t, 0, h.Conclusion.ExitCode)
	assert.Equal(t, 4, h.Counts().Verified)
	assert.Len(t, h.Resumed, 1)
	assert.Empty(t, h.Open())
	assert.Equal(t, sandbox.OutcomeVerified, h.Outcome(sandbox.Ref{Provider: "prod", ID: "hung0001"}))
}
