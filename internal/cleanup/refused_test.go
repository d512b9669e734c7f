package cleanup_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAResumeTakesNoForgettingForAnEnd: the run's DELETE was refused or not answered, and
// the API has lost the record since. A resume must not report that as an end, however
// often.
func TestAResumeTakesNoForgettingForAnEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		lines   func(s *scene, h runs.History) []entry
		outcome sandbox.Outcome
	}{
		"refused": {func(_ *scene, h runs.History) []entry {
			i, e := h.Begin.Plan.Items[0], sandbox.Ending{Outcome: sandbox.OutcomeAccepted, Request: &sandbox.EndRequest{Detail: "HTTP 500"}}
			return []entry{{runs.EntryIntent, runs.Intent{Ref: i.Ref}}, {runs.EntryResult, runs.Result{Ref: i.Ref, Outcome: e.Outcome, Request: e.Request}}}
		}, sandbox.OutcomeAccepted},
		"cut off before the answer": {func(_ *scene, h runs.History) []entry {
			return []entry{{runs.EntryIntent, runs.Intent{Ref: h.Begin.Plan.Items[0].Ref}}}
		}, sandbox.OutcomeAccepted},
		"acknowledged": {func(_ *scene, h runs.History) []entry {
			ref := h.Begin.Plan.Items[0].Ref
			return []entry{{runs.EntryIntent, runs.Intent{Ref: ref}}, {runs.EntryResult, runs.Result{
				Ref: ref, Outcome: sandbox.OutcomeAccepted, Request: &sandbox.EndRequest{Acknowledged: true},
			}}}
		}, sandbox.OutcomeVerified},
		"never asked": {func(*scene, runs.History) []entry { return nil }, sandbox.OutcomeAlreadyGone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{})
			h := s.cutOff(t)
			begin := h.Begin
			h = runs.HistoryOf(written(t, begin, tc.lines(s, h)...))
			require.Len(t, h.Open(), 1)
			s.p.Orphan("box1")
			got := s.end(t, cleanup.ResumedTargets(h))
			assert.Equal(t, tc.outcome, got.Outcome, got.Reason)
			assert.Zero(t, s.asked())
			if tc.outcome == sandbox.OutcomeAccepted {
				assert.True(t, got.Request.Unconfirmed(), "and the next resume knows it too")
			}
		})
	}
}

// TestARefusedRequestIsWrittenDown: the journal has what a later read needs.
func TestARefusedRequestIsWrittenDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := oneOld(fake.Options{After: fake.AfterMissing})
		s.p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "HTTP 500 hunter2"), Late: true})
		kept := &memo{}
		run := s.run(kept)
		run.Targets = s.look(t).Targets()
		for e := range run.EndTargets(t.Context()) {
			assert.Equal(t, sandbox.OutcomeAccepted, e.Outcome, e.Reason)
		}
		require.Len(t, kept.results, 1)
		request := kept.results[0].Request
		require.NotNil(t, request)
		assert.False(t, request.Acknowledged)
		assert.Equal(t, "prod: terminate box1: HTTP 500 ***", request.Detail)
	})
}
