package end_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/providers"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// held refuses the end of one sandbox, as its rehearsal says.
type held struct {
	*fake.Provider

	id  string
	log *rehearsals
}

type rehearsals struct {
	mu  sync.Mutex
	ids []string
}

// Rehearse implements providers.Rehearser.
func (h held) Rehearse(_ context.Context, id string, _ providers.TerminateOptions) error {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.ids = append(h.log.ids, id)
	if id == h.id {
		return fault.New(fault.KindRefused, "it is under legal hold")
	}
	return nil
}

const underHold = "the provider would refuse it: it is under legal hold"

func newHeldSite(t *testing.T, config, id string, p *fake.Provider) (*opstest.Site, *rehearsals) {
	t.Helper()
	s, log := opstest.NewSite(t, config, p), &rehearsals{}
	s.Wrap = func(p *fake.Provider) providers.Provider { return held{p, id, log} }
	return s, log
}

// The plan of a cleanup keeps what its provider would refuse, and the run that a person allows leaves it.
func TestACleanupPlanShowsRefusals(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001", "cccc0001")
	s, log := newHeldSite(t, opstest.OneProfile, "bbbb0001", p)
	r := &opstest.Recorder{Answer: opstest.Yes}
	env := s.Env(t)
	planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"aaaa0001", "bbbb0001", "cccc0001"}, log.ids, "what the rule selects, each once")
	assert.Len(t, planned.Plan().Items, 2)
	assert.Equal(t, 2, planned.Survey.Shares[0].Selected)
	at := slices.IndexFunc(planned.Survey.Kept, func(j cleanup.Judgement) bool { return j.Sandbox.ID == "bbbb0001" })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, cleanup.KeepRefused, planned.Survey.Kept[at].KeepReason)
	assert.Equal(t, underHold, planned.Survey.Kept[at].Reason)
	assert.Empty(t, opstest.Asked(p))
	require.NoError(t, r.Does(t, planned.Act(), nil).Err)
	assert.ElementsMatch(t, []string{"aaaa0001", "cccc0001"}, opstest.Asked(p))
	assert.Len(t, log.ids, 3, "a run is no rehearsal")
}

func TestATerminatePlanShowsRefusals(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("aaaa0001", "bbbb0001")
	s, log := newHeldSite(t, opstest.OneProfile, "bbbb0001", p)
	r := &opstest.Recorder{}
	words := []string{"aaaa0001", "bbbb0001"}
	plan, err := end.PlanTerminate(t.Context(), s.Env(t), end.TerminateRequest{Words: words, Typed: words, Shown: true})
	require.NoError(t, err)
	assert.ElementsMatch(t, words, log.ids)
	require.Len(t, plan.Targets, 1)
	assert.Equal(t, "aaaa0001", plan.Targets[0].Ref.ID)
	require.Len(t, plan.Kept, 1)
	assert.Equal(t, underHold, plan.Kept[0].Reason)
	assert.Empty(t, opstest.Asked(p))
	result, err := end.Terminate(t.Context(), s.Env(t), end.TerminateRequest{Words: words[:1], Typed: words[:1]}, r)
	require.NoError(t, err)
	require.NoError(t, result.Err)
	assert.Len(t, log.ids, 2, "an end without a question needs none")
}

func TestReadOnlyRehearsesNothing(t *testing.T) {
	t.Parallel()
	s, log := newHeldSite(t, opstest.OneProfile, "bbbb0001", opstest.Prod("aaaa0001", "bbbb0001"))
	r := &opstest.Recorder{}
	env := s.Env(t)
	env.ReadOnly = true
	plan, err := end.PlanTerminate(t.Context(), env, end.TerminateRequest{Words: []string{"bbbb0001"}, Shown: true})
	require.NoError(t, err)
	assert.Len(t, plan.Targets, 1)
	planned, err := end.PlanCleanup(t.Context(), env, tenMinutes(), r)
	require.NoError(t, err)
	assert.Len(t, planned.Survey.Selected, 2)
	assert.Empty(t, log.ids)
}

// Two questions about one run rehearse it once, and what was shown as refused is not asked to end.
func TestAQuestionShowsRefusals(t *testing.T) {
	t.Parallel()
	words := []string{"aaaa0001", "bbbb0001", "cccc0001", "dddd0001", "eeee0001", "ffff0001"}
	p := opstest.Prod(words...)
	s, log := newHeldSite(t, opstest.OneProfile+"production: [prod]\n", "bbbb0001", p)
	r := &opstest.Recorder{Answer: opstest.Yes}
	act, err := end.PlanTerminate(t.Context(), s.Env(t), end.TerminateRequest{Words: words, Typed: words})
	result := r.Does(t, act, err)
	require.Len(t, r.Questions, 2)
	for _, q := range r.Questions {
		assert.Len(t, q.Targets, 5)
		assert.False(t, slices.ContainsFunc(q.Targets, func(e ops.PlannedEnd) bool { return e.Ref.ID == "bbbb0001" }))
	}
	assert.Len(t, log.ids, 6)
	assert.Len(t, opstest.Asked(p), 5)
	assert.Equal(t, "skipped", r.Outcomes()["bbbb0001"])
	assert.Equal(t, fault.KindPartial, fault.KindOf(result.Err), "it was named by hand")
}
