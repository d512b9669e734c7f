package kubernetes_test

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/tiertest"
)

const (
	agents     = "agents.x-k8s.io/v1beta1"
	extensions = "extensions.agents.x-k8s.io/v1beta1"
	lostNode   = "node-2" // of tools/kube: it takes the pods that name it, and is silent while it has the label `lost`
)

// scene is a real cluster with a client of sbx, whose rows have a label of the scene.
type scene struct {
	owner

	c     *kubernetes.Client
	label map[string]string
}

func newScene(t *testing.T) scene {
	t.Helper()
	file := realCluster(t)
	view := strings.ToLower(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
	view = strings.NewReplacer(" ", "-", "_", "-", "#", "-").Replace(view)
	c := onCluster(t, file, map[string]string{"label": "scene=" + view})
	t.Cleanup(c.Close)
	return scene{newOwner(t, file), c, map[string]string{"scene": view}}
}

func (s scene) pod(spec fields) made {
	return s.create("pod", "v1", "pods", meta(s.label), spec, nil)
}

func (s scene) sandbox(spec fields) made {
	return s.create("Sandbox", agents, "sandboxes", meta(s.label), fields{"podTemplate": fields{"metadata": fields{"labels": s.label}, "spec": spec}}, nil)
}

// shows reads a sandbox until it is as it shall be.
func (s scene) shows(id string, is func(sandbox.Sandbox) bool) sandbox.Sandbox {
	s.t.Helper()
	var now sandbox.Sandbox
	require.Eventually(s.t, func() bool {
		var err error
		now, err = s.c.Get(s.t.Context(), id)
		return err == nil && is(now)
	}, s.limit(), 100*time.Millisecond, "%s", id)
	return now
}

func runs(now sandbox.Sandbox) bool { return now.State == sandbox.StateRunning }

func (s scene) terminate(id string) {
	s.t.Helper()
	require.NoError(s.t, s.c.Terminate(s.t.Context(), id, providers.TerminateOptions{Delete: true, Grace: time.Second, By: "test"}))
}

// verified waits for the proof of an end.
func (s scene) verified(id string) providers.Proof {
	s.t.Helper()
	var proof providers.Proof
	var err error
	proved := func() bool {
		proof, err = s.c.VerifyEnd(s.t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
		return err == nil && proof.Ended == sandbox.True
	}
	if !assert.Eventually(s.t, proved, s.limit(), 100*time.Millisecond) {
		require.Failf(s.t, "its end is not proved", "%s: %s %v", id, proof.Reason, err)
	}
	return proof
}

// swallow takes memory until there is none left.
const swallow = `x=0123456789abcdef; while :; do x=$x$x; done`

func TestEndsOnACluster(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		spec  fields
		class sandbox.Class
		cause sandbox.Cause
	}{
		"memory":    {podSpec("exec sh -c '" + swallow + "'"), sandbox.ClassOOM, sandbox.CauseOOM},
		"137 alone": {podSpec("exit 137"), sandbox.ClassKilledUnknown, sandbox.CauseUnknown},
		"an exit":   {podSpec("exit 3"), sandbox.ClassAgentError, sandbox.CauseUnknown},
		"success":   {podSpec("exit 0"), sandbox.ClassOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for kind, id := range map[string]string{
				"pod":     s.pod(end.spec).id("pod"),
				"job":     s.create("Job", "batch/v1", "jobs", meta(s.label), fields{"backoffLimit": 0, "template": fields{"spec": end.spec}}, nil).id("job"),
				"sandbox": s.sandbox(end.spec).id("sandbox"),
			} {
				exit := s.shows(id, func(now sandbox.Sandbox) bool { return now.State.Ended() }).Exit
				if assert.NotNil(t, exit, kind) {
					assert.Equal(t, end.class, exit.Class, kind)
					assert.Equal(t, end.cause, exit.Cause, kind)
					assert.NotEmpty(t, exit.Evidence, kind)
				}
			}
		})
	}
}

// TestTheDeadlineOfAJobOnACluster: it is decided at once and is an end when its pods are gone.
func TestTheDeadlineOfAJobOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.create("Job", "batch/v1", "jobs", meta(s.label), fields{"backoffLimit": 0, "activeDeadlineSeconds": 1, "template": fields{"spec": podSpec("exec sleep 600")}}, nil).id("job")
	now := s.shows(id, func(now sandbox.Sandbox) bool { return now.State == sandbox.StateFailed })
	require.NotNil(t, now.Exit)
	assert.Equal(t, sandbox.ClassTimeout, now.Exit.Class)
	assert.Equal(t, "Failed: DeadlineExceeded", now.RawState)
}

// TestASidecarIsNoLifeOnACluster: the main container has ended and another one runs on.
func TestASidecarIsNoLifeOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	spec := podSpec("exit 3")
	spec["containers"] = []any{container("main", "exit 3"), container("proxy", "exec sleep 600")}
	id := s.pod(spec).id("pod")
	now := s.shows(id, func(now sandbox.Sandbox) bool { return now.Exit != nil })
	assert.Equal(t, "Running: main container Error", now.RawState)
	assert.Equal(t, 3, *now.Exit.Code)
	s.terminate(id)
	s.verified(id)
}

// TestPodsThatWaitOnACluster: they have the word of the scheduler or the kubelet in their state.
func TestPodsThatWaitOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	huge := podSpec("exit 0")
	huge["containers"] = []any{fields{"name": "main", "image": kubernetestest.Image, "resources": fields{"requests": fields{"cpu": "1000"}}}}
	s.shows(s.pod(huge).id("pod"), func(now sandbox.Sandbox) bool {
		return now.State == sandbox.StateProvisioning && now.RawState == "Pending: Unschedulable"
	})
	absent := podSpec("exit 0")
	absent["containers"] = []any{fields{"name": "main", "image": "no-such-image:1"}}
	s.shows(s.pod(absent).id("pod"), func(now sandbox.Sandbox) bool { return now.RawState == "Pending: ImagePullBackOff" })
}

// TestAClaimEndsOnACluster: the sandbox of a claim is ended through the claim, and the claim takes no other one
// from the pool. The stock of the pool is not listed and is refused.
func TestAClaimEndsOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	template := s.create("SandboxTemplate", extensions, "sandboxtemplates", meta(s.label), fields{"podTemplate": fields{"metadata": fields{"labels": s.label}, "spec": podSpec("exec sleep 600")}}, nil)
	pool := s.create("SandboxWarmPool", extensions, "sandboxwarmpools", meta(s.label), fields{"replicas": 2, "sandboxTemplateRef": fields{"name": template.text("metadata", "name")}}, nil)
	full := func(m made) bool { return m.text("status", "readyReplicas") == "2" }
	s.await(pool, full)
	require.Empty(t, list(t, s.c), "idle stock is no sandbox of anybody")

	claim := s.create("SandboxClaim", extensions, "sandboxclaims", meta(s.label), fields{"warmPoolRef": fields{"name": pool.text("metadata", "name")}}, nil)
	bound := s.await(claim, func(m made) bool { return m.condition("Ready") == "True" })
	taken, _ := s.do(t.Context(), http.MethodGet, strings.Replace(s.sandboxes(), "{name}", bound.text("status", "sandbox", "name"), 1), nil)
	s.await(pool, full)
	stock := s.stock()
	require.Len(t, stock, 2)

	for _, m := range stock {
		err := s.c.Terminate(t.Context(), m.id("sandbox"), providers.TerminateOptions{Delete: true, By: "test"})
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	}
	id := taken.id("sandbox")
	s.shows(id, runs)
	s.terminate(id)
	s.verified(id)
	_, code := s.do(t.Context(), http.MethodGet, claim.path, nil)
	assert.Equal(t, http.StatusNotFound, code, "the claim is still there, and takes the next one")
	left := s.stock()
	require.Len(t, left, 2)
	for i, m := range left {
		assert.Equal(t, stock[i].text("metadata", "uid"), m.text("metadata", "uid"), "the pool was touched")
	}
}

func (s scene) sandboxes() string {
	return "/apis/" + agents + "/namespaces/" + kubernetestest.Namespace + "/sandboxes/{name}"
}

// stock are the sandboxes of the scene that no claim has taken.
func (s scene) stock() (all []made) {
	s.t.Helper()
	list, _ := s.do(s.t.Context(), http.MethodGet, strings.TrimSuffix(s.sandboxes(), "/{name}"), nil)
	items, _ := list.field("items").([]any)
	for _, item := range items {
		m := made{fields: item.(fields)} //nolint:forcetypeassert,errcheck // an item is an object
		owners, _ := m.field("metadata", "ownerReferences").([]any)
		if len(owners) == 1 && owners[0].(fields)["kind"] == "SandboxWarmPool" { //nolint:forcetypeassert,errcheck // as above
			all = append(all, m)
		}
	}
	return all
}

// TestALostNodeOfACluster: while a node is silent its pods stay, whatever the conditions say, and the node is
// named. When it is back the end is proved.
func TestALostNodeOfACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	spec := podSpec("exec sleep 600")
	spec["nodeName"] = lostNode
	m := s.sandbox(spec)
	id := m.id("sandbox")
	s.shows(id, runs)
	node := made{path: "/api/v1/nodes/" + lostNode}
	lose := func(ctx context.Context, value any) {
		_, code := s.do(ctx, http.MethodPatch, node.path, fields{"metadata": fields{"labels": fields{"lost": value}}})
		assert.Equal(t, http.StatusOK, code)
	}
	t.Cleanup(func() { lose(context.WithoutCancel(t.Context()), nil) })
	lose(t.Context(), "yes")
	s.await(node, func(m made) bool { return m.condition("Ready") != "True" })
	s.terminate(id)
	var proof providers.Proof
	require.Eventually(t, func() bool {
		var err error
		proof, err = s.c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
		require.NoError(t, err)
		require.Equal(t, sandbox.False, proof.Ended, "nothing has confirmed the end")
		return strings.Contains(proof.Reason, "node "+lostNode+" is not ready")
	}, tiertest.Limit(t), 200*time.Millisecond, "the node is not named")
	now, err := s.c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminating, now.State)
	lose(t.Context(), nil)
	s.verified(id)
}

// TestAnObjectMadeAgainOnACluster: it is another one: the id of the first never ends it, also where it is made again
// between the look and the delete.
func TestAnObjectMadeAgainOnACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.pod(podSpec("exec sleep 600"))
	again := func() made {
		s.do(t.Context(), http.MethodDelete, first.path, fields{"gracePeriodSeconds": 0})
		s.await(first, func(m made) bool { return m.text("kind") == "Status" })
		metadata := meta(s.label)
		metadata["name"] = first.text("metadata", "name")
		return s.create("pod", "v1", "pods", metadata, podSpec("exec sleep 600"), nil)
	}
	second := again()
	err := s.c.Terminate(t.Context(), first.id("pod"), providers.TerminateOptions{Delete: true, By: "test"})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	s.shows(second.id("pod"), runs)

	first = second
	p := s.between(t, func() { second = again() })
	err = p.client.Terminate(t.Context(), first.id("pod"), providers.TerminateOptions{Delete: true, By: "test"})
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
	assert.Contains(t, p.answer, `"code":409`, "the precondition refuses")
	assert.Contains(t, p.answer, "The object might have been deleted and then recreated")
	s.shows(second.id("pod"), runs)
}

// proxy stands between sbx and the API server.
type proxy struct {
	client *kubernetes.Client
	answer string // of the first delete
}

// between is a client whose first delete waits until act has been carried out.
func (s scene) between(t *testing.T, act func()) *proxy {
	t.Helper()
	p := &proxy{}
	var once sync.Once
	to, err := url.Parse(s.base)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{
		Transport: s.http.Transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Method != http.MethodDelete || p.answer != "" {
				return nil
			}
			text, err := io.ReadAll(r.Body)
			p.answer, r.Body = string(text), io.NopCloser(strings.NewReader(string(text)))
			return err
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			once.Do(act)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p.client = onCluster(t, kubernetestest.Config(t, server.URL), nil)
	t.Cleanup(p.client.Close)
	return p
}

// namespace makes a namespace that is deleted after the test, with a client whose profile names it.
func (s scene) namespace(settings map[string]string) (scene, string) {
	s.t.Helper()
	name := "days-" + strings.ToLower(rand.Text()[:12])
	made, code := s.do(s.t.Context(), http.MethodPost, "/api/v1/namespaces", fields{"apiVersion": "v1", "kind": "Namespace", "metadata": fields{"name": name}})
	require.Equal(s.t, http.StatusCreated, code, "%v", made.fields)
	s.t.Cleanup(func() { s.do(context.Background(), http.MethodDelete, "/api/v1/namespaces/"+name, nil) })
	own := map[string]string{"namespace": name}
	maps.Copy(own, settings)
	s.c = onCluster(s.t, realCluster(s.t), own)
	s.t.Cleanup(s.c.Close)
	return s, name
}

// TestPodsOverAQuotaOnACluster: the create fails within seconds with the words of the API, and leaves nothing.
func TestPodsOverAQuotaOnACluster(t *testing.T) {
	t.Parallel()
	for kind, kinds := range map[string]string{"job": "job,pod", "sandbox": ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, name := newScene(t).namespace(map[string]string{"kinds": kinds})
			path := "/api/v1/namespaces/" + name + "/resourcequotas"
			_, code := s.do(t.Context(), http.MethodPost, path, fields{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": fields{"name": "small"}, "spec": fields{"hard": fields{"limits.memory": "64Mi"}}})
			require.Equal(t, http.StatusCreated, code)
			s.await(made{path: path + "/small"}, func(m made) bool { return m.text("status", "hard", "limits.memory") == "64Mi" })
			for words, memory := range map[string]int64{"exceeded quota: small, requested: limits.memory=134217728": 128 * sandbox.MiB, "must specify limits.memory": 0} {
				began := time.Now()
				_, err := s.c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image, MemoryBytes: memory})
				assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, words)
				require.ErrorContains(t, err, "its sandbox was deleted again")
				assert.Regexp(t, "sbx doctor|--memory", fault.HintOf(err))
				assert.Less(t, time.Since(began), time.Minute)
			}
			require.Eventually(t, func() bool { return len(list(t, s.c)) == 0 }, s.limit(), 100*time.Millisecond)
		})
	}
}

// TestAFinalizerOnACluster: what it keeps is terminating, its end is not proved, and the finalizer is named.
func TestAFinalizerOnACluster(t *testing.T) {
	t.Parallel()
	const hold = "example.com/hold"
	for _, kind := range []string{"pod", "job", "sandbox"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			metadata := meta(s.label)
			metadata["finalizers"] = []string{hold}
			var m made
			switch kind {
			case "pod":
				m = s.create("pod", "v1", "pods", metadata, podSpec("exec sleep 600"), nil)
			case "job":
				m = s.create("Job", "batch/v1", "jobs", metadata, fields{"template": fields{"spec": podSpec("exec sleep 600")}}, nil)
			case "sandbox":
				m = s.create("Sandbox", agents, "sandboxes", metadata, fields{"podTemplate": fields{"spec": podSpec("exec sleep 600")}}, nil)
			}
			release := func() {
				s.do(context.WithoutCancel(t.Context()), http.MethodPatch, m.path, fields{"metadata": fields{"finalizers": nil}})
			}
			t.Cleanup(release)
			id := m.id(kind)
			s.shows(id, runs)
			s.terminate(id)
			var proof providers.Proof
			require.Eventually(t, func() bool {
				var err error
				proof, err = s.c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Now: time.Now()})
				require.NoError(t, err)
				require.Equal(t, sandbox.False, proof.Ended, "the record is there")
				return proof.KeptBy != ""
			}, s.limit(), 100*time.Millisecond)
			assert.Equal(t, "these finalizers are not removed: "+hold, proof.KeptBy)
			assert.Equal(t, sandbox.StateTerminating, s.shows(id, func(sandbox.Sandbox) bool { return true }).State)
			release()
			s.verified(id)
		})
	}
}

// TestATerminatingNamespaceOfACluster takes nothing new, which is no missing right.
func TestATerminatingNamespaceOfACluster(t *testing.T) {
	t.Parallel()
	for kind, kinds := range map[string]string{"job": "job,pod", "sandbox": ""} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, name := newScene(t).namespace(map[string]string{"kinds": kinds})
			path := "/api/v1/namespaces/" + name + "/configmaps"
			_, code := s.do(t.Context(), http.MethodPost, path, fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "held", "finalizers": []string{"example.com/hold"}}})
			require.Equal(t, http.StatusCreated, code)
			t.Cleanup(func() {
				s.do(context.WithoutCancel(t.Context()), http.MethodPatch, path+"/held", fields{"metadata": fields{"finalizers": nil}})
			})
			s.do(t.Context(), http.MethodDelete, "/api/v1/namespaces/"+name, nil)
			_, err := s.c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image})
			assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, "because it is being terminated")
			require.ErrorIs(t, err, providers.ErrNothingMade)
			assert.Contains(t, fault.HintOf(err), "the namespace "+name+" is being deleted")
		})
	}
}

// TestManyEventsOfACluster has those of all pages, the newest last.
func TestManyEventsOfACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.pod(podSpec("exec sleep 600"))
	id := m.id("pod")
	s.shows(id, runs)
	at := time.Now().Add(time.Hour).UTC()
	for i := range 1200 {
		stamp := at.Add(time.Duration(i) * time.Second).Format(time.RFC3339)
		_, code := s.do(t.Context(), http.MethodPost, "/api/v1/namespaces/"+kubernetestest.Namespace+"/events", fields{
			"apiVersion": "v1", "kind": "Event", "metadata": fields{"name": "e-" + strings.ToLower(rand.Text())}, "reason": "BackOff", "message": stamp, "type": "Warning",
			"involvedObject": fields{"kind": "Pod", "namespace": kubernetestest.Namespace, "name": m.text("metadata", "name"), "uid": m.text("metadata", "uid")}, "firstTimestamp": stamp, "lastTimestamp": stamp,
		})
		require.Equal(t, http.StatusCreated, code)
	}
	events, err := s.c.Events(t.Context(), id)
	require.NoError(t, err)
	require.Greater(t, len(events), 1200)
	assert.Equal(t, at.Add(1199*time.Second).Format(time.RFC3339), events[len(events)-1].Detail)
}

// TestTwoPodsOfACluster: a sandbox with a second pod is in no known state, and its end is that of both.
func TestTwoPodsOfACluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	m := s.sandbox(podSpec("exec sleep 600"))
	id := m.id("sandbox")
	s.shows(id, runs)
	first, _ := s.do(t.Context(), http.MethodGet, "/api/v1/namespaces/"+kubernetestest.Namespace+"/pods/"+m.text("metadata", "name"), nil)
	metadata := meta(nil)
	metadata["labels"], metadata["ownerReferences"] = first.field("metadata", "labels"), first.field("metadata", "ownerReferences")
	second := s.create("pod", "v1", "pods", metadata, podSpec("exec sleep 600"), nil)
	s.shows(id, func(now sandbox.Sandbox) bool {
		return now.RawState == "MultiplePods" && now.State == sandbox.StateUnknown
	})
	require.Len(t, list(t, s.c), 1, "both are part of the sandbox")
	s.terminate(id)
	s.verified(id)
	for _, pod := range []made{first, second} {
		_, code := s.do(t.Context(), http.MethodGet, pod.path, nil)
		assert.Equal(t, http.StatusNotFound, code)
	}
}
