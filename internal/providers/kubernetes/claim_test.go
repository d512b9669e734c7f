package kubernetes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
)

// A claim and its sandbox are one row, whichever of them names the other.
func TestClaimIsPartOfItsSandbox(t *testing.T) {
	t.Parallel()
	waits := []any{met("Ready", "False", "SandboxNotReady")}
	for name, tc := range map[string]struct {
		claim kubernetestest.Seed
		owned bool
	}{
		"both":              {kubernetestest.Seed{}, true},
		"the owner alone":   {kubernetestest.Seed{Conditions: waits}, true},
		"the status alone":  {kubernetestest.Seed{Conditions: waits, Sandbox: "warm-1"}, false},
		"another is waited": {kubernetestest.Seed{Conditions: waits, Sandbox: "warm-2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			tc.claim.Kind, tc.claim.Name = "claim", "session"
			claim, warm := f.Add(tc.claim), kubernetestest.Seed{Kind: "sandbox", Name: "warm-1"}
			if tc.owned {
				warm.Owner = claim
			}
			id, other := f.Add(warm), f.Add(kubernetestest.Seed{Kind: "claim", Name: "other"})
			f.Add(kubernetestest.Seed{Kind: "job", Name: "warm-1"})
			c := dialed(t, f)
			defer c.Close()
			var ids []string
			for _, row := range list(t, c) {
				if row.Name != "warm-1" || row.ID == id {
					ids = append(ids, row.ID)
				}
			}
			assert.Equal(t, []string{id, other}, ids)
		})
	}
}

// The name of a claim stands for its sandbox, and for the claim where there is none.
func TestNameOfAClaim(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	bound, waits := f.Add(kubernetestest.Seed{Kind: "claim", Name: "bound"}), f.Add(kubernetestest.Seed{Kind: "claim", Name: "waits"})
	lost := f.Add(kubernetestest.Seed{Kind: "claim", Name: "lost", Sandbox: "lost"})
	id := f.Add(kubernetestest.Seed{Kind: "sandbox", Name: "warm-1", Owner: bound})
	c := dialed(t, f)
	defer c.Close()
	for name, want := range map[string]string{"bound": id, "waits": waits, "lost": lost} {
		got, err := c.Get(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, want, got.ID)
	}
	got, err := c.Get(t.Context(), bound)
	require.NoError(t, err)
	assert.Equal(t, bound, got.ID, "its id stands for itself")
}

func TestClaimEndsAsItself(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id, again := f.Add(kubernetestest.Seed{Kind: "claim", Age: time.Hour}), f.Add(kubernetestest.Seed{Kind: "claim", Name: "again"})
	c := dialed(t, f)
	defer c.Close()
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	assert.Len(t, f.Calls("DELETE /apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxclaims/{name}"), 1)
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	f.Replace(again)
	err = c.Terminate(t.Context(), again, providers.TerminateOptions{})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	assert.Len(t, list(t, c), 1, "the new one stays")
}

// A pod that a claim has got meanwhile is part of its end.
func TestEndOfAClaimWithAPod(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	f.Add(kubernetestest.Seed{Name: "left", Labels: map[string]string{"agents.x-k8s.io/claim-uid": "0a1b2c3d-5ca1-4ab1-8e55-000000000001"}})
	c := dialed(t, f)
	defer c.Close()
	proof, err := c.VerifyEnd(t.Context(), "claim.session.0a1b2c3d", providers.EndQuery{Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended)
	assert.Contains(t, proof.Reason, "its pod left is still there")
}

func TestPools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o     kubernetestest.Options
		kinds string
		want  []providers.Check
	}{
		"served": {kubernetestest.Options{}, "", []providers.Check{
			{Check: "pool busy", Verdict: sandbox.False, Message: "1 of 3 ready", Info: true},
			{Check: "pool warm", Verdict: sandbox.True, Message: "3 of 3 ready", Info: true},
		}},
		"without the right": {kubernetestest.Options{Refuse: []string{"list sandboxwarmpools"}}, "", nil},
		"not served":        {kubernetestest.Options{NoClaims: true}, "", nil},
		"other kinds":       {kubernetestest.Options{}, "job,pod", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.Virtual = true
			f := kubernetestest.New(t, tc.o)
			f.Add(kubernetestest.Seed{Kind: "pool", Name: "busy", Replicas: 3, Ready: 1})
			f.Add(kubernetestest.Seed{Kind: "pool", Name: "warm", Replicas: 3, Ready: 3})
			settings := kubernetestest.Settings(t, base)
			settings["kinds"] = tc.kinds
			c := open(t, settings, netOf(f))
			defer c.Close()
			checks := c.Check(t.Context())
			require.GreaterOrEqual(t, len(checks), 3)
			assert.Equal(t, sandbox.True, checks[1].Verdict, checks[1].Message)
			assert.ElementsMatch(t, tc.want, checks[3:])
		})
	}
}
