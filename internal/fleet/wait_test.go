package fleet_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

func TestWait(t *testing.T) {
	t.Parallel()
	get := fake.OpGet
	for name, tc := range map[string]struct {
		options fake.Options
		spec    sandbox.Spec
		faults  []fake.Fault
		goal    fleet.Goal
		state   sandbox.State
		raw     string
		kind    fault.Kind
		took    time.Duration
	}{
		"ended at once":    {fake.Options{}, sandbox.Spec{Command: []string{"true"}}, nil, fleet.GoalEnded, "terminated", "terminated", "", 0},
		"ended later":      {fake.Options{}, sandbox.Spec{Command: []string{"sleep", "10"}}, nil, fleet.GoalEnded, "terminated", "terminated", "", 11175 * time.Millisecond},
		"failed":           {fake.Options{}, sandbox.Spec{Command: []string{"false"}}, nil, fleet.GoalEnded, "failed", "failed", "", 0},
		"vanished":         {fake.Options{After: fake.AfterMissing}, sandbox.Spec{Command: []string{"sleep", "1"}}, nil, fleet.GoalEnded, "terminated", "gone", "", 1575 * time.Millisecond},
		"gone before":      {fake.Options{After: fake.AfterGone}, sandbox.Spec{Command: []string{"true"}}, nil, fleet.GoalEnded, "terminated", "gone", "", 0},
		"running later":    {fake.Options{ProvisionFor: time.Second}, sandbox.Spec{}, nil, fleet.GoalRunning, "running", "running", "", 1575 * time.Millisecond},
		"never runs":       {fake.Options{}, sandbox.Spec{Command: []string{"false"}}, nil, fleet.GoalRunning, "failed", "failed", fault.KindUnverified, 0},
		"never was":        {fake.Options{After: fake.AfterMissing}, sandbox.Spec{Command: []string{"true"}}, nil, fleet.GoalEnded, "", "", fault.KindNotFound, 0},
		"a bad moment":     {fake.Options{}, sandbox.Spec{}, []fake.Fault{{Op: get, Times: 3, Err: planted(fault.KindUnavailable)}}, fleet.GoalRunning, "running", "running", "", 175 * time.Millisecond},
		"down":             {fake.Options{}, sandbox.Spec{}, []fake.Fault{{Op: get, Err: planted(fault.KindUnavailable)}}, fleet.GoalRunning, "", "", fault.KindUnavailable, 21175 * time.Millisecond},
		"no right":         {fake.Options{}, sandbox.Spec{}, []fake.Fault{{Op: get, Err: planted(fault.KindAuth)}}, fleet.GoalRunning, "", "", fault.KindAuth, 0},
		"hangs":            {fake.Options{}, sandbox.Spec{}, []fake.Fault{{Op: get, Hang: true}}, fleet.GoalRunning, "", "", fault.KindUnavailable, 20 * time.Second},
		"the limit passes": {fake.Options{}, sandbox.Spec{}, nil, fleet.GoalEnded, "running", "running", fault.KindTimeout, time.Hour},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tc.options.Name = "prod"
			p := fake.New(tc.options)
			made, err := p.Create(t.Context(), tc.spec)
			require.NoError(t, err)
			p.Break(tc.faults...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			got, err := of(p).Wait(ctx, made.Ref(), tc.goal)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Equal(t, tc.state, got.State)
			assert.Equal(t, tc.raw, got.RawState)
			assert.Equal(t, tc.took, time.Since(began))
		})
	}
	_, err := of().Wait(t.Context(), sandbox.Ref{Provider: "x", ID: "y"}, fleet.GoalEnded)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	assert.Len(t, fleet.Goals(), 2)
}
