package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

func netOf(f *kubernetestest.Fake) httpx.Net { return httpx.Net{Dial: f.Dial} }

func cutSpace(text string) (before, after string, found bool) { return strings.Cut(text, " ") }

// A pod of a job, and a sandbox of a claim, would be replaced: their owners are deleted.
func TestOwnersAreEnded(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	claim := f.Add(kubernetestest.Seed{Kind: "claim"})
	id := f.Add(kubernetestest.Seed{Kind: "sandbox", Name: "claimed", Owner: claim})
	other := f.Add(kubernetestest.Seed{Kind: "sandbox"})
	c := dialed(t, f)
	defer c.Close()
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	assert.Empty(t, f.Calls("DELETE /apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes/{name}"))
	rows := list(t, c)
	require.Len(t, rows, 1, "nothing has taken its place")
	assert.Equal(t, other, rows[0].ID)
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	assert.False(t, proof.Independent, "a forced delete looks the same")
}

func TestStockIsNotEnded(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id := f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: f.Add(kubernetestest.Seed{Kind: "pool", Name: "warm"})})
	c := dialed(t, f)
	defer c.Close()
	err := c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.Contains(t, fault.HintOf(err), "sandboxwarmpools/warm")
	assert.Zero(t, f.Changes())
}

// An object that was deleted and created again under the same name is another sandbox.
func TestNameThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id := f.Add(kubernetestest.Seed{Name: "agent"})
	c := dialed(t, f)
	defer c.Close()
	f.Replace(id)
	err := c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	assert.Zero(t, f.Changes())
	now, err := c.Get(t.Context(), "agent")
	require.NoError(t, err, "by its name")
	assert.NotEqual(t, id, now.ID)
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
}

// An end that the kubelet does not confirm is none, and the node is named.
func TestLostNode(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"pod", "job", "sandbox"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, LostNode: true, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
			id := f.Add(kubernetestest.Seed{Kind: kind})
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, sandbox.StateTerminating, got.State, "its conditions still say that it runs")
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
			require.NoError(t, err)
			assert.Equal(t, sandbox.False, proof.Ended)
			assert.Contains(t, proof.Reason, kubernetestest.Node+" is not ready")
		})
	}
}

// What a controller says has ended has not while a pod of it may run: it is ended, and its end is proved by the pods.
func TestNoControllerOutweighsPods(t *testing.T) {
	t.Parallel()
	for kind, raw := range map[string]string{"job": "Failed: DeadlineExceeded", "sandbox": "SandboxExpired", "claim": "ClaimExpired"} {
		bubble.Run(t, kind, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, EndFor: time.Minute})
			id := f.Add(kubernetestest.Seed{Kind: kind, Labels: map[string]string{"team": "a"}})
			settings := kubernetestest.Settings(t, base)
			if kind == "claim" { // the profile does not list its sandbox
				f.Add(kubernetestest.Seed{Kind: "sandbox", Owner: id})
				settings["label"] = "team=a"
			}
			c := open(t, settings, netOf(f))
			defer c.Close()
			f.Conclude(id)
			got, err := c.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, sandbox.StateTerminating, got.State)
			assert.Contains(t, got.RawState, raw+": its pod ")
			assert.Zero(t, got.EndedAt)
			assert.Equal(t, []sandbox.Sandbox{got}, list(t, c), "the list says the same")
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
			require.NoError(t, err)
			assert.Equal(t, sandbox.False, proof.Ended)
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Grace: 30 * time.Second}), "it is asked, and is not gone")
			assert.Equal(t, 1, f.Changes())
			pass(2 * time.Minute)
			proof, err = c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
			require.NoError(t, err)
			assert.Equal(t, sandbox.True, proof.Ended)
		})
	}
}

// A record that states the end, and one that is missing, are held against all pods of the namespace.
func TestRecordsAreHeldAgainstAllPods(t *testing.T) {
	t.Parallel()
	for kind, route := range map[string]string{"pod": podsRoute, "job": "/apis/batch/v1/namespaces/{ns}/jobs", "sandbox": "/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"} {
		for name, lie := range map[string]wiretest.Fault{
			"ended": {Edit: func(body []byte) []byte {
				said := `"status":{"selector":"app=another","phase":"Failed","conditions":[{"type":"Failed","status":"True"},{"type":"Finished","status":"True"}]}}`
				return append(body[:bytes.LastIndex(body, []byte(`"status":{`))], said...)
			}},
			"missing": {Status: http.StatusNotFound, Body: `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
				id := f.Add(kubernetestest.Seed{Kind: kind})
				c := dialed(t, f)
				defer c.Close()
				lie.Route = "GET " + route + "/{name}"
				f.Break(lie)
				proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
				require.NoError(t, err)
				assert.Equal(t, sandbox.False, proof.Ended, "%+v", proof)
			})
		}
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Refuse: []string{"list jobs", "create pods/exec"}})
	f.Add(kubernetestest.Seed{})
	c := dialed(t, f)
	defer c.Close()
	var failed error
	for _, err := range c.List(t.Context(), providers.Query{}) {
		if err != nil {
			failed = err
		}
	}
	assert.Equal(t, fault.KindAuth, fault.KindOf(failed), "a part of a list is none: %v", failed)
	for _, check := range c.Check(t.Context()) {
		if check.Check == "rights" {
			assert.Equal(t, sandbox.False, check.Verdict)
			assert.Contains(t, check.Message, "list jobs (sbx ls), create pods/exec (sbx exec)")
		}
	}
}

// A pod that does not start is deleted again, and the error says why.
func TestPodsThatDoNotStart(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{NoCRD: true})
	c := open(t, kubernetestest.Settings(t, f.Listen()), httpx.Net{})
	defer c.Close()
	_, err := c.Create(t.Context(), sandbox.Spec{Image: "no-such-image:1"})
	assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "ImagePullBackOff: Back-off pulling image; its sandbox was deleted again")
	assert.Len(t, f.Calls("DELETE /apis/batch/v1/namespaces/{ns}/jobs/{name}"), 1)
}

func TestLabelsThatChangeMeanwhile(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id := f.Add(kubernetestest.Seed{})
	a, b := dialed(t, f), dialed(t, f)
	defer a.Close()
	defer b.Close()
	write := func(value string) func(map[string]string) {
		return func(l map[string]string) { l["sbx/keep"] = value }
	}
	_, err := a.EditLabels(t.Context(), id, func(l map[string]string) {
		_, failed := b.EditLabels(t.Context(), id, func(l map[string]string) { l["team"] = "b" })
		assert.NoError(t, failed) //nolint:testifylint // the edit goes on
		write("true")(l)
	})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "a write would decide by labels that nobody has read: %v", err)
	_, err = a.EditLabels(t.Context(), id, write("a value with spaces"))
	require.NoError(t, err, "an annotation takes any value")
	_, err = a.EditLabels(t.Context(), id, func(l map[string]string) { l["team"] = "with spaces" })
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
}

// The credentials of a kubeconfig reach a server with TLS, and its WebSockets, and nothing else.
func TestCredentials(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(f.ServeHTTP))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	id := f.Add(kubernetestest.Seed{})
	file := kubernetestest.Config(t, server.URL)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "{server:", "{certificate-authority-data: "+ca+", server:", 1)), 0o600))
	c := open(t, map[string]string{"kubeconfig": file}, httpx.Net{})
	defer c.Close()
	require.Len(t, list(t, c), 1)
	exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	require.NoError(t, err)
	assert.Equal(t, 0, *exit.Code)
}

// Proofs of many ends at a time share lists of the pods, of which each begins after the proof.
func TestProofsShareLists(t *testing.T) {
	t.Parallel()
	const latency = 100 * time.Millisecond
	verify := func(t *testing.T, c *kubernetes.Client, id string, want sandbox.Verdict) {
		t.Helper()
		proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
		assert.NoError(t, err) //nolint:testifylint // it is no goroutine of the test
		assert.Equal(t, want, proof.Ended, "%s", proof.Reason)
	}
	lists := func(f *kubernetestest.Fake) int { return len(f.Calls("GET " + podsRoute)) }
	bubble.Run(t, "at the same time", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Wire: wiretest.Options{Latency: latency}})
		c := dialed(t, f)
		defer c.Close()
		var proofs sync.WaitGroup
		for range 16 {
			id := f.Add(kubernetestest.Seed{Kind: "job", NoPod: true})
			f.Expire(id)
			proofs.Go(func() { verify(t, c, id, sandbox.True) })
		}
		proofs.Wait()
		assert.Equal(t, 2, lists(f), "the first one, and one for all that waited")
	})
	bubble.Run(t, "a list that has begun before", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Wire: wiretest.Options{Latency: latency}})
		c := dialed(t, f)
		defer c.Close()
		first, job := f.Add(kubernetestest.Seed{Kind: "job", NoPod: true}), f.Add(kubernetestest.Seed{Kind: "job", NoPod: true})
		f.Expire(first)
		f.Expire(job)
		var proofs sync.WaitGroup
		proofs.Go(func() { verify(t, c, first, sandbox.True) })
		pass(latency / 2)
		proofs.Go(func() { verify(t, c, job, sandbox.True) })
		proofs.Wait()
		assert.Equal(t, 2, lists(f))
	})
	bubble.Run(t, "a list that hangs", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		c := dialed(t, f)
		defer c.Close()
		id := f.Add(kubernetestest.Seed{Kind: "job", NoPod: true})
		f.Expire(id)
		f.Break(wiretest.Fault{Route: "GET " + podsRoute, Trouble: wiretest.TroubleHang, Times: 1})
		var proofs sync.WaitGroup
		proofs.Go(func() { verify(t, c, id, sandbox.True) })
		pass(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.VerifyEnd(ctx, id, providers.EndQuery{Now: time.Now()})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "%v", err)
		assert.Equal(t, time.Second, time.Since(began))
		proofs.Wait()
	})
}
