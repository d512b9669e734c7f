package kubernetes_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// TestWhichEndIsMoved: that of the object, or that of the claim that it belongs to; a pod can only end sooner.
func TestWhichEndIsMoved(t *testing.T) {
	t.Parallel()
	const agents, claims = "/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxclaims"
	for name, tc := range map[string]struct {
		seed, claim kubernetestest.Seed
		patched     string // a route; "" = none
		kind        fault.Kind
		said        string
	}{
		"a job":         {seed: kubernetestest.Seed{Kind: "job", Ends: time.Minute}, patched: "/apis/batch/v1/namespaces/{ns}/jobs"},
		"a sandbox":     {seed: kubernetestest.Seed{Kind: "sandbox", Ends: time.Minute}, patched: agents},
		"a claimed one": {seed: kubernetestest.Seed{Kind: "sandbox"}, claim: kubernetestest.Seed{Ends: time.Minute}, patched: claims},
		"a claimed one without end": {
			seed: kubernetestest.Seed{Kind: "sandbox"}, claim: kubernetestest.Seed{Name: "forever"}, kind: fault.KindRefused,
			said: "no end of it is known",
		},
		"a suspended one": {
			seed: kubernetestest.Seed{Kind: "sandbox", Ends: time.Minute, Suspended: true, NoPod: true}, kind: fault.KindRefused,
			said: "it is paused",
		},
		"a job without an end": {seed: kubernetestest.Seed{Kind: "job"}, kind: fault.KindRefused, said: "no end of it is known"},
		"a pod": {
			seed: kubernetestest.Seed{Ends: time.Minute}, kind: fault.KindUnsupported, said: "the API only makes the time limit of a Pod shorter",
		},
		"one of an older sbx": {
			seed: kubernetestest.Seed{Kind: "job", Ends: time.Minute, Annotations: map[string]string{sandbox.LabelRun: "main"}, Command: []string{"sleep", "600"}},
			kind: fault.KindUnsupported, said: "an older sbx made it",
		},
		"one that ends later already": {seed: kubernetestest.Seed{Kind: "sandbox", Ends: 3 * time.Hour}, kind: fault.KindRefused, said: "is not later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			if tc.claim.Ends > 0 || tc.claim.Name != "" {
				tc.claim.Kind = "claim"
				tc.seed.Owner = f.Add(tc.claim)
			}
			id := f.Add(tc.seed)
			c := dialed(t, f)
			defer c.Close()
			until := time.Now().Add(2 * time.Hour)
			was, err := c.Extend(t.Context(), id, until)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			if tc.patched == "" {
				assert.Contains(t, err.Error(), tc.said)
				assert.Zero(t, f.Changes())
				return
			}
			assert.Equal(t, id, was.ID)
			assert.Len(t, f.Calls("PATCH "+tc.patched+"/{name}"), 1)
			now, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.WithinRange(t, now.ExpiresAt, until.Truncate(time.Second), until.Add(2*time.Second))
		})
	}
}

// TestAnObjectThatChangesMeanwhile is read and judged again: its controller writes its status.
func TestAnObjectThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	conflict := wiretest.Fault{Status: http.StatusConflict, Body: `{"kind":"Status","reason":"Conflict","message":"the object has been modified"}`}
	const route = "PATCH /apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes/{name}"
	for name, tc := range map[string]struct {
		times int
		kind  fault.Kind
		calls int
	}{"once": {1, fault.KindNone, 2}, "each time": {0, fault.KindUnavailable, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: "sandbox", Ends: time.Minute})
			conflict := conflict
			conflict.Times = tc.times
			f.BreakRoutes(conflict, route)
			c := dialed(t, f)
			defer c.Close()
			_, err := c.Extend(t.Context(), id, time.Now().Add(time.Hour))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, f.Calls(route), tc.calls)
		})
	}
}

// TestWhatSbxMadeWaitsLonger: its main program is told, and has not ended when the first end has come.
func TestWhatSbxMadeWaitsLonger(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{TTL: 3 * time.Second})
	require.NoError(t, err)
	_, err = c.Extend(t.Context(), made.ID, time.Now().Add(time.Hour))
	require.NoError(t, err)
	first := made.ExpiresAt.Add(4 * time.Second)
	require.Eventually(t, func() bool { return time.Now().After(first) }, time.Minute, 50*time.Millisecond)
	now, err := c.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, now.State, now.RawState)
}
