package cleanup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestFailedOnes: failed sandboxes go with --include-failed where their provider keeps them
// until they are deleted, and are verified to be gone (R87).
func TestFailedOnes(t *testing.T) {
	t.Parallel()
	failed := func(age time.Duration) func(*fake.Seed) {
		return func(s *fake.Seed) {
			s.Sandbox.State = sandbox.StateFailed
			if s.Sandbox.CreatedAt = time.Now().Add(-age); age == 0 {
				s.Sandbox.CreatedAt = time.Time{}
			}
		}
	}
	for name, tc := range map[string]struct {
		stays  bool // at its provider, until it is deleted
		age    time.Duration
		rule   func(*cleanup.Rule)
		ground cleanup.KeepReason
	}{
		"stays, included":              {true, time.Hour, func(r *cleanup.Rule) { r.IncludeFailed = true }, cleanup.KeepNone},
		"stays, young, included":       {true, time.Minute, func(r *cleanup.Rule) { r.IncludeFailed = true }, cleanup.KeepNone},
		"stays, young, by its own age": {true, time.Minute, func(r *cleanup.Rule) { r.IncludeFailed, r.FailedOlderThan = true, 10*time.Minute }, cleanup.KeepNotSelected},
		"stays, of no known age":       {true, 0, func(r *cleanup.Rule) { r.IncludeFailed = true }, cleanup.KeepAgeUnknown},
		"stays, another label": {true, time.Hour, func(r *cleanup.Rule) {
			r.IncludeFailed, r.Selector.Labels = true, []selector.Label{{Key: "team", Values: []string{"other"}}}
		}, cleanup.KeepNotSelected},
		"stays, the stuck rule":          {true, time.Hour, func(r *cleanup.Rule) { r.IncludeFailed, r.Selector.Stuck = true, true }, cleanup.KeepNone},
		"stays, not included":            {true, time.Hour, func(*cleanup.Rule) {}, cleanup.KeepEnded},
		"a record, included":             {false, time.Hour, func(r *cleanup.Rule) { r.IncludeFailed = true }, cleanup.KeepNeedsDelete},
		"a record, included and deleted": {false, time.Hour, func(r *cleanup.Rule) { r.IncludeFailed, r.Delete = true, true }, cleanup.KeepNone},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := oneOld(fake.Options{FailedStays: tc.stays}, failed(tc.age))
			tc.rule(&s.rule)
			survey := s.look(t)
			if tc.ground != cleanup.KeepNone {
				require.Len(t, survey.Kept, 1)
				assert.Equal(t, tc.ground, survey.Kept[0].KeepReason, survey.Kept[0].Reason)
				return
			}
			require.Len(t, survey.Selected, 1)
			assert.Equal(t, 1, survey.Shares[0].Fleet, "it counts to the fleet of which a share may end")
			got := s.end(t, survey.Targets())
			assert.Equal(t, sandbox.OutcomeVerified, got.Outcome, got.Reason)
			assert.Equal(t, 1, s.asked())
			assert.Empty(t, s.look(t).Kept, "it is not listed any more")
		})
	}
}
