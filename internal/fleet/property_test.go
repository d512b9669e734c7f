package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
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

// TestEveryTargetEndsInExactlyOneOutcome throws random faults at random fleets;
// the name of a failing case is its seed.
func TestEveryTargetEndsInExactlyOneOutcome(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		bubble.Run(t, strconv.FormatUint(seed, 10), func(t *testing.T) { randomRun(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func randomRun(t *testing.T, r *rand.Rand) {
	t.Helper()
	slots := 1 + r.IntN(8)
	fakes := map[string]*fake.Provider{}
	var members []providers.Provider
	var targets []sandbox.Sandbox
	for i := range 1 + r.IntN(3) {
		p, some := herd(fake.Options{
			Name: fmt.Sprintf("p%d", i), Latency: time.Duration(r.IntN(50)) * time.Millisecond,
			EndFor: time.Duration(r.IntN(3000)) * time.Millisecond, After: fake.After(r.IntN(3)),
		}, 5+r.IntN(20))
		for range r.IntN(12) {
			p.Break(randomFault(r, some[r.IntN(len(some))].ID))
		}
		fakes[p.Name()], members, targets = p, append(members, p), append(targets, some...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if r.IntN(2) == 0 {
		time.AfterFunc(time.Duration(r.IntN(2000))*time.Millisecond, cancel)
	}
	o := fleet.EndOptions{Delete: r.IntN(3) == 0, Wait: time.Duration(1+r.IntN(5)) * time.Second}
	if r.IntN(2) == 0 {
		o.Recheck = unread()
	}
	endings := endThese(ctx, with(fleet.Options{Slots: slots}, members...), o, targets...)

	seen := map[sandbox.Ref]int{}
	for _, e := range endings {
		seen[e.Ref]++
		checkEvidence(t, e)
		checkOutcome(t, fakes[e.Ref.Provider], e)
	}
	for _, target := range targets {
		assert.Equal(t, 1, seen[target.Ref()], "%s", target.Ref())
	}
	for name, p := range fakes {
		assert.LessOrEqual(t, p.Peak(), slots, "requests in flight to %s", name)
	}
	c := fleet.Count(endings)
	sum := c.Verified + c.AlreadyGone + c.Accepted + c.Stuck + c.Failed + c.Changed + c.Skipped + c.NotAttempted
	assert.Equal(t, len(targets), c.Selected)
	assert.Equal(t, c.Selected, sum)
	assert.Equal(t, c.Verified+c.AlreadyGone == c.Selected, fleet.Verdict(endings, true) == nil, "exit 0 is for all done: %+v", c)
}

func randomFault(r *rand.Rand, id string) fake.Fault {
	kinds := []fault.Kind{
		fault.KindUnavailable, fault.KindAuth, fault.KindNotFound, fault.KindGone,
		fault.KindUnknown, fault.KindRefused, fault.KindUnavailable,
	}
	f := fake.Fault{
		Op: []fake.Op{fake.OpGet, fake.OpTerminate}[r.IntN(2)], ID: id,
		After: r.IntN(3), Times: r.IntN(4), Delay: time.Duration(r.IntN(500)) * time.Millisecond,
	}
	switch r.IntN(4) {
	case 0:
		f.Hang = true
	case 1:
		f.Skip = true
	default:
		f.Err, f.Late = planted(kinds[r.IntN(len(kinds))]), r.IntN(2) == 0
	}
	return f
}

// checkOutcome compares a claim with what the fake knows.
func checkOutcome(t *testing.T, p *fake.Provider, e sandbox.Ending) {
	t.Helper()
	asked := 0
	for _, c := range p.Calls(fake.OpTerminate) {
		if c.ID == e.Ref.ID {
			asked++
		}
	}
	assert.LessOrEqual(t, asked, 2, "%s was asked %d times", e.Ref, asked) // again where it was denied and is listed
	switch e.Outcome {
	case sandbox.OutcomeVerified:
		assert.Positive(t, asked, "%s: an end without a request is not ours", e.Ref)
	case sandbox.OutcomeAccepted, sandbox.OutcomeStuck:
		assert.Positive(t, asked, "%s: accepted means asked", e.Ref)
		assert.NotEmpty(t, e.Reason)
	case sandbox.OutcomeNotAttempted:
		assert.Zero(t, asked, "%s", e.Ref)
		require.Error(t, e.Err)
	case sandbox.OutcomeFailed:
		require.Error(t, e.Err)
		assert.NotEmpty(t, e.Reason)
	case sandbox.OutcomeAlreadyGone, sandbox.OutcomeChanged, sandbox.OutcomeSkipped:
		assert.NotEmpty(t, e.Reason, "%s: not ended by us, for no reason", e.Ref)
	}
}
