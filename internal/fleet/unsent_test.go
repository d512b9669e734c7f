package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestWhatWasNotSentIsNoRequest: a provider reads before it asks, and a read that failed has ended nothing. What is on
// record of it is taken back, and it is tried again.
func TestWhatWasNotSentIsNoRequest(t *testing.T) {
	t.Parallel()
	unsent := providers.NothingSent(planted(fault.KindUnavailable))
	for name, tc := range map[string]struct {
		times   int
		before  *sandbox.EndRequest
		outcome sandbox.Outcome
	}{
		"for a moment":                   {2, nil, sandbox.OutcomeVerified},
		"for ever":                       {0, nil, sandbox.OutcomeFailed},
		"for ever, after a lost request": {0, &sandbox.EndRequest{Detail: "HTTP 500"}, sandbox.OutcomeFailed},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p, store := stocked("prod", "abcd"), &requests{}
			p.Break(fake.Fault{Op: fake.OpTerminate, Times: tc.times, Err: unsent})
			var recorded sandbox.EndRequest
			o := fleet.EndOptions{
				Earlier: map[sandbox.Ref]*sandbox.EndRequest{{Provider: "prod", ID: "abcd"}: tc.before},
				Before: func(context.Context, sandbox.Sandbox, bool) error {
					recorded = sandbox.EndRequest{Detail: "none"}
					return nil
				},
				After: func(_ sandbox.Ref, r sandbox.EndRequest) { recorded = r },
			}
			got := endThese(t.Context(), with(fleet.Options{EndRequests: store}, p), o, sandbox.Sandbox{Provider: "prod", ID: "abcd", State: sandbox.StateRunning})
			assert.Equal(t, tc.outcome, got[0].Outcome, "%s", got[0].Reason)
			assert.Equal(t, tc.before != nil, len(store.all) == 1, "%+v", store.all)
			if tc.outcome == sandbox.OutcomeFailed {
				assert.Contains(t, got[0].Reason, "nothing was sent to end it: ")
				assert.Equal(t, tc.before != nil, recorded.Unconfirmed(), "%+v", recorded)
				assert.Equal(t, fault.KindUnavailable, fault.KindOf(fleet.Verdict(got, true)))
				assert.Equal(t, 7*time.Second, got[0].Duration, "it is tried again for a while, and opens no breaker")
			}
		})
	}
}
