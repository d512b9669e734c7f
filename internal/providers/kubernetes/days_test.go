package kubernetes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/wiretest"
)

// Words of kube-apiserver 1.36.
const (
	overQuota   = `pods "big" is forbidden: exceeded quota: small, requested: limits.memory=128Mi, used: limits.memory=0, limited: limits.memory=64Mi`
	noLimits    = `pods "big" is forbidden: failed quota: small: must specify limits.memory for: main`
	overObjects = `jobs.batch "big" is forbidden: exceeded quota: objects, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1`
	terminating = `jobs.batch "big" is forbidden: unable to create new content in namespace agents because it is being terminated`
	denied      = `admission webhook "guard.example" denied the request: you cannot have it`
	noRight     = `jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group "batch" in the namespace "agents"`
)

// Where the API refuses the pod, the create ends within seconds, says why, and leaves nothing.
func TestPodsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    kubernetestest.Options
		hint string
	}{
		"quota, of a job":          {kubernetestest.Options{NoPods: overQuota, NoCRD: true}, "`sbx doctor --provider prod`"},
		"quota, of a sandbox":      {kubernetestest.Options{NoPods: overQuota}, "`sbx doctor --provider prod`"},
		"without limits":           {kubernetestest.Options{NoPods: noLimits, NoCRD: true}, "--memory"},
		"webhook, of a job":        {kubernetestest.Options{NoPods: denied, NoCRD: true}, "admission rule"},
		"webhook, of an old kind":  {kubernetestest.Options{NoPods: denied, Alpha: true}, "admission rule"},
		"a sandbox without events": {kubernetestest.Options{NoPods: overQuota, Refuse: []string{"list events"}}, "`sbx doctor --provider prod`"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			tc.o.Virtual = true
			f := kubernetestest.New(t, tc.o)
			c := dialed(t, f)
			defer c.Close()
			began := time.Now()
			_, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image, MemoryBytes: 128 * sandbox.MiB})
			assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.o.NoPods)
			require.ErrorContains(t, err, "its sandbox was deleted again")
			assert.Contains(t, fault.HintOf(err), tc.hint)
			assert.LessOrEqual(t, time.Since(began), 10*time.Second)
			assert.Empty(t, list(t, c), "it was deleted again")
		})
	}
	bubble.Run(t, "a job without events", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: true, NoPods: overQuota, Refuse: []string{"list events"}})
		c := dialed(t, f)
		defer c.Close()
		_, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image})
		assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "its pod does not run after 5m0s: no pod")
		assert.Empty(t, list(t, c))
	})
	bubble.Run(t, "a quota that has room again", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: true, NoPods: overQuota})
		c := dialed(t, f)
		defer c.Close()
		time.AfterFunc(3*time.Second, func() { f.MakePods() })
		made, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image})
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateRunning, made.State)
	})
}

// A create that a rule of the cluster refuses is no missing right.
func TestCreatesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		says string
		kind fault.Kind
		hint string
	}{
		"quota of objects":      {overObjects, fault.KindRefused, "`sbx doctor --provider prod`"},
		"terminating namespace": {terminating, fault.KindRefused, "the namespace agents is being deleted"},
		"webhook":               {denied, fault.KindRefused, "admission rule"},
		"missing right":         {noRight, fault.KindAuth, "sbx doctor"},
		"of a proxy":            {"", fault.KindAuth, "sbx doctor"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, NoCRD: true})
			c := dialed(t, f)
			defer c.Close()
			f.Break(failure("POST /apis/batch/v1/namespaces/{ns}/jobs", http.StatusForbidden, tc.says))
			_, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image})
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			require.ErrorIs(t, err, providers.ErrNothingMade)
			assert.Contains(t, fault.HintOf(err), tc.hint)
			wiretest.CheckPlace(t, err)
		})
	}
}

// failure answers a route with a Status; without words as a proxy does.
func failure(route string, code int, says string) wiretest.Fault {
	if says == "" {
		return wiretest.Fault{Route: route, Status: code, Body: "Forbidden"}
	}
	text, err := json.Marshal(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": http.StatusText(code), "message": says, "code": code})
	if err != nil {
		panic(err)
	}
	return wiretest.Fault{Route: route, Status: code, Body: string(text)}
}

// What a finalizer keeps has not ended, and the finalizer is named. That of a pod that still runs is no reason.
func TestFinalizers(t *testing.T) {
	t.Parallel()
	for kind, seed := range map[string]kubernetestest.Seed{"pod": {}, "job": {Kind: "job"}, "sandbox": {Kind: "sandbox"}, "claim": {Kind: "claim"}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			seed.Finalizers = []string{"example.com/hold"}
			id := f.Add(seed)
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
			for range 2 { // it is asked again, and ends already
				got, err := c.Get(t.Context(), id)
				require.NoError(t, err)
				assert.Equal(t, sandbox.StateTerminating, got.State)
				proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
				require.NoError(t, err)
				assert.Equal(t, sandbox.False, proof.Ended)
				assert.Equal(t, "these finalizers are not removed: example.com/hold", proof.KeptBy)
				assert.Contains(t, proof.Reason, proof.KeptBy)
				require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
			}
			assert.Len(t, deletes(f), 1)
		})
	}
	t.Run("on a lost node", func(t *testing.T) {
		t.Parallel()
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, LostNode: true, Now: func() time.Time { return time.Now().Add(-time.Hour) }})
		id := f.Add(kubernetestest.Seed{Finalizers: []string{"batch.kubernetes.io/job-tracking"}})
		c := dialed(t, f)
		defer c.Close()
		require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
		proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Now: time.Now()})
		require.NoError(t, err)
		assert.Equal(t, "its node "+kubernetestest.Node+" is not ready", proof.KeptBy)
	})
}

// What of the cluster does not answer is an error of the listing, which is never complete without it.
func TestPartsThatAreDown(t *testing.T) {
	t.Parallel()
	const sandboxes = "GET /apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"
	for name, tc := range map[string]wiretest.Fault{
		"conversion webhook": failure(sandboxes, http.StatusInternalServerError, `conversion webhook for agents.x-k8s.io/v1alpha1, Kind=Sandbox failed: Post "https://agent-sandbox.svc:443/convert": dial tcp: connect: connection refused`),
		"discovery":          failure("GET /apis/agents.x-k8s.io", http.StatusServiceUnavailable, "the server is currently unable to handle the request"),
		"jobs":               failure("GET /apis/batch/v1/namespaces/{ns}/jobs", http.StatusGatewayTimeout, "etcdserver: request timed out"),
		"token":              failure(sandboxes, http.StatusUnauthorized, "Unauthorized"),
		"claims":             {Route: "GET /apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxclaims", Trouble: wiretest.TroubleHang},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
			f.Add(kubernetestest.Seed{})
			f.Add(kubernetestest.Seed{Kind: "sandbox"})
			c := dialed(t, f)
			defer c.Close()
			f.Break(tc)
			began := time.Now()
			rows, err := listed(t.Context(), c, providers.Query{})
			want := fault.KindUnavailable
			if name == "token" {
				want = fault.KindAuth
			}
			assert.Equal(t, want, fault.KindOf(err), "%v", err)
			assert.NotEmpty(t, rows, "what was read before stays")
			assert.LessOrEqual(t, time.Since(began), time.Minute)
			f.Heal()
			pass(time.Minute)
			assert.Len(t, list(t, c), 2)
		})
	}
	bubble.Run(t, "metrics", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		id := f.Add(kubernetestest.Seed{})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: "GET /apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/{name}", Status: http.StatusServiceUnavailable, Body: "service unavailable\n", Header: map[string]string{"Content-Type": "text/plain"}})
		_, err := c.Usage(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "no sample is not no use: %v", err)
	})
	bubble.Run(t, "metrics of another pod", func(t *testing.T) {
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		id, other := f.Add(kubernetestest.Seed{Name: "asked"}), "other"
		f.Add(kubernetestest.Seed{Name: other})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: "GET /apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/{name}", Contains: "asked", Other: other})
		_, err := c.Usage(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	})
	bubble.Run(t, "a 404 about another pod", func(t *testing.T) { // it is no answer that the cluster has no metrics server
		f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
		id := f.Add(kubernetestest.Seed{Name: "asked"})
		c := dialed(t, f)
		defer c.Close()
		for message, want := range map[string]fault.Kind{
			`podmetrics.metrics.k8s.io "other" not found`:             fault.KindUnavailable,
			`podmetrics.metrics.k8s.io "default/other" not found`:     fault.KindUnavailable,
			`podmetrics.metrics.k8s.io "asked" not found`:             fault.KindNone,
			`podmetrics.metrics.k8s.io "default/asked" not found`:     fault.KindNone,
			"the server could not find the requested resource":        fault.KindUnsupported,
			`podmetrics.metrics.k8s.io "default/asked-too" not found`: fault.KindUnavailable,
		} {
			f.Break(failure("GET /apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/{name}", http.StatusNotFound, message))
			_, err := c.Usage(t.Context(), id)
			assert.Equal(t, want, fault.KindOf(err), "%s: %v", message, err)
			f.Heal()
		}
	})
}

// The API gives events in the order of their names, 500 at a time.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id := f.Add(kubernetestest.Seed{Age: 2 * time.Hour})
	f.Note(id, "BackOff", 5000)
	c := dialed(t, f)
	defer c.Close()
	events, err := c.Events(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, events, 5001)
	assert.Equal(t, "4999", events[5000].Detail, "the newest")
	f.Break(wiretest.Fault{Route: "GET /api/v1/namespaces/{ns}/events", Contains: "continue=", Status: http.StatusGone, Body: `{"reason":"Expired"}`})
	events, err = c.Events(t.Context(), id)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	assert.Len(t, events, 501, "what was read before the error")
}

// Times that the cluster judges are those of its clock.
func TestClockOfTheAPI(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour} {
		bubble.Run(t, name, func(t *testing.T) {
			f := kubernetestest.New(t, kubernetestest.Options{Virtual: true, Now: func() time.Time { return time.Now().Add(ahead) }})
			f.Break(wiretest.Fault{HeaderFunc: func() map[string]string {
				return map[string]string{"Date": time.Now().Add(ahead).UTC().Format(http.TimeFormat)}
			}})
			c := dialed(t, f)
			defer c.Close()
			_, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image, TTL: 10 * time.Minute})
			require.NoError(t, err)
			calls := f.Calls("POST /apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes")
			require.Len(t, calls, 1)
			var body struct {
				Spec struct {
					ShutdownTime time.Time `json:"shutdownTime"` //nolint:tagliatelle // as the API spells it
				} `json:"spec"`
			}
			require.NoError(t, json.Unmarshal(calls[0].Body, &body))
			assert.InDelta(t, (ahead + 10*time.Minute).Seconds(), time.Until(body.Spec.ShutdownTime).Seconds(), 5)
		})
	}
}

// A certificate of the API server that has expired is an outage, and the error names it.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	f := kubernetestest.New(t, kubernetestest.Options{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(f.ServeHTTP))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	defer server.Close()
	file := kubernetestest.Config(t, server.URL)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "{server:", "{certificate-authority-data: "+ca+", server:", 1)), 0o600))
	c := open(t, map[string]string{"kubeconfig": file}, httpx.Net{})
	defer c.Close()
	rows, err := listed(context.WithoutCancel(t.Context()), c, providers.Query{})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "certificate has expired")
	assert.Empty(t, rows)
	assert.Contains(t, fault.HintOf(err), "clock")
}

// While one of several pods is left, the end is not proved.
func TestTwoPods(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{Virtual: true})
	id := f.Add(kubernetestest.Seed{Kind: "sandbox", Conditions: []any{met("Ready", "False", "MultiplePods")}})
	second := f.Add(kubernetestest.Seed{Owner: id, Finalizers: []string{"example.com/hold"}})
	c := dialed(t, f)
	defer c.Close()
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended, "%s of %s is left", second, id)
	assert.Contains(t, proof.Reason, "its pod agent-3 is still there")
	assert.Contains(t, proof.KeptBy, "example.com/hold")
}
