package kubernetes_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// endNamed has a fleet find what words mean, and end it.
func endNamed(t *testing.T, c *kubernetes.Client, words ...string) {
	t.Helper()
	f := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{})
	for i := range words {
		words[i] = "prod/" + words[i]
	}
	found, err := f.Find(t.Context(), words, fleet.FindOptions{Destructive: true})
	require.NoError(t, err)
	require.Len(t, found, len(words))
	for e := range f.Terminate(t.Context(), found, fleet.EndOptions{Delete: true, Grace: 5 * time.Second}) {
		assert.Equal(t, sandbox.OutcomeVerified, e.Outcome, "%s", e.Reason)
	}
}

// An end reads once to find its target, once right before the request and once after it, and lists the pods.
func TestRequestsOfAnEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind   string
		named  bool
		noCRD  bool
		expect int
	}{
		"a pod by its id":           {expect: 5},
		"a pod by its name":         {named: true, expect: 5 + 3}, // whether there are sandboxes, and no sandbox and no job has the name
		"a pod by its name, no CRD": {named: true, noCRD: true, expect: 5 + 2},
		"a job by its id":           {kind: "job", expect: 8}, // each read has the pods, and the record is read twice
		"a sandbox by its id":       {kind: "sandbox", expect: 9},
		"a sandbox by its name":     {kind: "sandbox", named: true, expect: 9},
		"a job by its name, no CRD": {kind: "job", named: true, noCRD: true, expect: 9},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: tc.noCRD})
			word := f.Add(kubernetestest.Seed{Kind: tc.kind, Name: "agent", Grace: 5 * time.Second})
			if tc.named {
				word = "agent"
			}
			c := dialed(t, f)
			defer c.Close()
			endNamed(t, c, word)
			assert.Len(t, f.Calls(""), tc.expect)
		})
	}
}

// Proofs of many ends share lists of pods, and many names the answers that no sandbox and no job has them.
func TestRequestsOfManyEnds(t *testing.T) {
	t.Parallel()
	const many = 50
	for name, most := range map[string]int{"by id": 5, "by name": 6} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Wire: wiretest.Options{Latency: 20 * time.Millisecond}})
			var words []string
			for i := range many {
				word := fmt.Sprintf("n-%d", i)
				if id := f.Add(kubernetestest.Seed{Name: word}); name == "by id" {
					word = id
				}
				words = append(words, word)
			}
			c := dialed(t, f)
			defer c.Close()
			endNamed(t, c, words...)
			t.Logf("%.2f requests for each", float64(len(f.Calls("")))/many)
			assert.LessOrEqual(t, len(f.Calls("")), most*many)
		})
	}
}

// Of a name the first kind counts that has it, also where many are asked for at a time, and where lists are refused.
func TestNamesOfSeveralKinds(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]kubernetestest.Options{"whole lists": {}, "several pages": {PageSize: 3}, "without the right to list": {Refuse: []string{"list sandboxes", "list jobs"}}} {
		bubble.Run(t, name, func(t *testing.T) {
			o.Virtual, o.Wire.Latency = true, 20*time.Millisecond
			f := kubernetestest.New(t, o)
			var refs, want []string
			for i := range 20 {
				kinds := []string{"pod", "job", "sandbox"}[:1+i%3]
				for _, kind := range kinds {
					id := f.Add(kubernetestest.Seed{Kind: kind, Name: fmt.Sprintf("n-%d", i), NoPod: kind != "pod"})
					if kind == kinds[len(kinds)-1] {
						want = append(want, id)
					}
				}
				refs = append(refs, fmt.Sprintf("prod/n-%d", i))
			}
			c := dialed(t, f)
			defer c.Close()
			found, err := fleet.New([]fleet.Member{{Provider: c}}, fleet.Options{}).Find(t.Context(), refs, fleet.FindOptions{})
			require.NoError(t, err)
			var got []string
			for _, s := range found {
				got = append(got, s.ID)
			}
			assert.Equal(t, want, got)
			none, err := c.Get(t.Context(), "nothing")
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", none)
		})
	}
}

// What changes between the read right before the request and the request is seen: the server refuses the delete of
// what was read, and it is read again.
func TestChangesRightBeforeTheRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  func(f *kubernetestest.Fake, id string)
		kind    fault.Kind
		deletes int // that the server has seen
		runs    bool
	}{
		"nothing": {func(*kubernetestest.Fake, string) {}, fault.KindNone, 1, false},
		"a label": {func(f *kubernetestest.Fake, id string) {
			f.Update(id, kubernetestest.Seed{Labels: map[string]string{"a": "b"}, Phase: "Running"})
		}, fault.KindNone, 2, false},
		"its controller": {func(f *kubernetestest.Fake, id string) {
			f.Adopt(id, f.Add(kubernetestest.Seed{Kind: "replicaset", Name: "set"}))
		}, fault.KindRefused, 1, true},
		"its end":      {func(f *kubernetestest.Fake, id string) { f.Update(id, kubernetestest.Seed{Phase: "Succeeded"}) }, fault.KindGone, 1, false},
		"its deletion": {func(f *kubernetestest.Fake, id string) { f.Expire(id) }, fault.KindNotFound, 1, false},
		"made again":   {func(f *kubernetestest.Fake, id string) { f.Replace(id) }, fault.KindNotFound, 1, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Name: "agent"})
			c := dialed(t, f)
			defer c.Close()
			seen, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			tc.change(f, id)
			err = c.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &seen})
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, deletes(f), tc.deletes)
			assert.Equal(t, tc.runs, f.Running() > 0)
		})
	}
}

// A read serves an end for a moment only, and only where its caller says that it is the one right before.
func TestAnOldReadServesNoEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen   bool
		after  time.Duration
		reads  int // of Get and of Terminate
		insist bool
	}{
		"right before": {true, 200 * time.Millisecond, 1, false}, "too old": {true, 300 * time.Millisecond, 2, false}, "not seen": {false, 0, 2, false}, "insisting": {true, 0, 2, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Name: "agent"})
			c := dialed(t, f)
			defer c.Close()
			seen, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			pass(tc.after)
			o := providers.TerminateOptions{Insist: tc.insist}
			if tc.seen {
				o.Seen = &seen
			}
			require.NoError(t, c.Terminate(t.Context(), id, o))
			assert.Len(t, f.Calls("GET "+podsRoute+"/{name}"), tc.reads)
		})
	}
}

// A read that wrongly does not find a pod is held against the list of all pods.
func TestAFalseReadProvesNoEnd(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pod", "job", "sandbox"} {
		bubble.Run(t, kind, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			id := f.Add(kubernetestest.Seed{Kind: kind, NoPod: kind != "pod"})
			c := dialed(t, f)
			defer c.Close()
			routes := map[string]string{"pod": podsRoute, "job": "/apis/batch/v1/namespaces/{ns}/jobs", "sandbox": "/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"}
			f.Break(wiretest.Fault{Route: "GET " + routes[kind] + "/{name}", Status: http.StatusNotFound, Times: 1, Body: `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`})
			_, err := c.Get(t.Context(), id)
			require.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
			require.NoError(t, err)
			assert.Equal(t, sandbox.False, proof.Ended, "%+v", proof)
		})
	}
}
