package launch_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops/launch"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/opstest"
)

// unanswered are requests to end sandboxes that were not acknowledged.
type unanswered map[sandbox.Ref]sandbox.EndRequest

func (u unanswered) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	return u, nil
}
func (u unanswered) Keep(context.Context, sandbox.Ref, sandbox.EndRequest) error { return nil }
func (u unanswered) Forget(context.Context, sandbox.Ref) error                   { return nil }

// TestWaitForWhatWasLost: a sandbox that no provider finds after an unacknowledged request is not known
// to have ended, and has after an acknowledged one. Of any other, nothing is known.
func TestWaitForWhatWasLost(t *testing.T) {
	t.Parallel()
	s := opstest.NewSite(t, opstest.OneProfile, opstest.Prod("other001"))
	s.Requests = unanswered{{Provider: "prod", ID: "lost0001"}: {Detail: "HTTP 500"}, {Provider: "prod", ID: "done0001"}: {Acknowledged: true}}
	for word, want := range map[string]fault.Kind{"prod/done0001": "", "done0001": "", "prod/lost0001": fault.KindUnverified, "lost0001": fault.KindUnverified, "prod/never001": fault.KindNotFound} {
		_, err := launch.Wait(t.Context(), s.Env(t), launch.WaitRequest{Word: word, Goal: fleet.GoalEnded}, &opstest.Recorder{})
		assert.Equal(t, want, fault.KindOf(err), "%s: %v", word, err)
	}
}
