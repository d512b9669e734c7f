package fleet_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// TestAnEndNeedsItsProof: where a provider can look beyond Get, an end that only
// Get shows is accepted, not verified.
func TestAnEndNeedsItsProof(t *testing.T) {
	t.Parallel()
	no := providers.Proof{Ended: sandbox.Unknown, Reason: "the host does not say"}
	yes := providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{{What: "host", Value: "502", Source: "host", At: time.Now()}}}
	for name, tc := range map[string]struct {
		proof   func(look int, q providers.EndQuery) (providers.Proof, error)
		fault   *fake.Fault
		outcome sandbox.Outcome
		reason  string
		took    time.Duration
	}{
		"at once": {func(int, providers.EndQuery) (providers.Proof, error) { return yes, nil }, nil, sandbox.OutcomeVerified, "", 0},
		"never":   {func(int, providers.EndQuery) (providers.Proof, error) { return no, nil }, nil, sandbox.OutcomeAccepted, "not verified: the host does not say", 10 * time.Second},
		"one error": {func(look int, _ providers.EndQuery) (providers.Proof, error) {
			if look == 0 {
				return yes, fault.New(fault.KindUnavailable, "the host is silent")
			}
			return yes, nil
		}, nil, sandbox.OutcomeVerified, "", 25 * time.Millisecond},
		"apart in time": {func(_ int, q providers.EndQuery) (providers.Proof, error) {
			if q.Now.Sub(q.Since) < 2*time.Second {
				return no, nil
			}
			return yes, nil
		}, nil, sandbox.OutcomeVerified, "", 3175 * time.Millisecond},
		"after a failed request": {func(_ int, q providers.EndQuery) (providers.Proof, error) {
			assert.True(t, q.Request.Unconfirmed())
			return yes, nil
		}, &fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "HTTP 500"), Late: true}, sandbox.OutcomeAccepted, "not verified: the request to end it was not acknowledged (prod: terminate abcd: HTTP 500)", 0},
		"after a failed request, an independent witness": {func(int, providers.EndQuery) (providers.Proof, error) {
			proof := yes
			proof.Independent = true
			return proof, nil
		}, &fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "HTTP 500"), Late: true}, sandbox.OutcomeVerified, "", 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			looks := 0
			p := fake.New(fake.Options{Name: "prod", After: fake.AfterMissing, Proof: func(_ string, q providers.EndQuery) (providers.Proof, error) {
				looks++
				return tc.proof(looks-1, q)
			}})
			p.Add(box("abcd", ""))
			if tc.fault != nil {
				p.Break(*tc.fault)
			}
			got := endThese(t.Context(), of(p), fleet.EndOptions{Wait: 10 * time.Second}, sandbox.Sandbox{Provider: "prod", ID: "abcd"})
			require.Len(t, got, 1)
			assert.Equal(t, tc.outcome, got[0].Outcome, "%s", got[0].Reason)
			assert.Contains(t, got[0].Reason, tc.reason)
			assert.Equal(t, tc.took, got[0].Duration)
			assert.Len(t, p.Calls(fake.OpTerminate), 1)
			if tc.outcome == sandbox.OutcomeVerified {
				assert.Contains(t, got[0].Evidence, yes.Evidence[0])
			}
		})
	}
}

// TestAnOpenBreakerAsksNothing: after five calls without an answer the rest of a
// run is left alone, and said to be.
func TestAnOpenBreakerAsksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, targets := herd(fake.Options{Name: "prod", Latency: time.Second}, 100)
		p.Break(fake.Fault{Op: fake.OpGet, Err: planted(fault.KindUnavailable)})
		endings := endThese(t.Context(), with(fleet.Options{Slots: 1}, p), fleet.EndOptions{}, targets...)
		c := fleet.Count(endings)
		assert.Equal(t, fleet.Counts{Selected: 100, Failed: 5, NotAttempted: 95}, c)
		assert.Empty(t, p.Calls(fake.OpTerminate))
		for _, e := range endings {
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(e.Err))
		}
	})
}
