package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/providertest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

// ClusterVariable names the kubeconfig of a real cluster for the tests that need one, with the contexts `admin`
// and `sbx`; the stage `kubernetes` of .ci/run starts it (tools/kube).
const ClusterVariable = "SBX_TEST_KUBERNETES"

// realCluster is the kubeconfig of the cluster; without one the test is skipped.
func realCluster(tb testing.TB) string {
	tb.Helper()
	file := os.Getenv(ClusterVariable)
	if file == "" {
		tb.Skipf("%s is not set: `.ci/run kubernetes` starts a cluster", ClusterVariable)
	}
	return file
}

// onCluster is a client of the real cluster, with some settings.
func onCluster(t wiretest.T, file string, more map[string]string) *kubernetes.Client {
	settings := map[string]string{"kubeconfig": file, "image": kubernetestest.Image}
	maps.Copy(settings, more)
	return open(t, settings, httpx.Net{})
}

// TestConformanceOfTheCluster plays the suite against a real API server, with real controllers and a kubelet that
// runs programs. Not played: `Orphan`, which drops the record of what runs on: the kubelet of tools/kube ends that.
func TestConformanceOfTheCluster(t *testing.T) {
	t.Parallel()
	file := realCluster(t)
	for name, kinds := range map[string]string{"jobs": "job,pod", "sandboxes": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := newOwner(t, file)
			views := map[providers.Provider]string{}
			view := func(p providers.Provider) map[string]string { return map[string]string{"sbx-view": views[p]} }
			c := providertest.Config{
				New: func(pt providertest.T) providers.Provider {
					view := strings.ToLower(rand.Text())
					c := onCluster(pt, file, map[string]string{"kinds": kinds, "label": "sbx-view=" + view}) // the namespace is one for all checks
					pt.Cleanup(c.Close)
					views[c] = view
					return c
				},
				Foreign: func(_ providertest.T, p providers.Provider) string {
					return owner.create("pod", "v1", "pods", meta(view(p)), podSpec("sleep 600"), nil).id("pod")
				},
				Many: 3, Limit: time.Minute,
			}
			if kinds == "" {
				c.Paused = func(_ providertest.T, p providers.Provider) string {
					return owner.create("Sandbox", "agents.x-k8s.io/v1beta1", "sandboxes", meta(view(p)), fields{"operatingMode": "Suspended", "podTemplate": fields{"spec": podSpec("sleep 600")}}, nil).id("sandbox")
				}
			}
			providertest.Run(t, c)
		})
	}
}

type fields = map[string]any

// owner is another client of the cluster: it makes what sbx does not.
type owner struct {
	t    testing.TB
	base string
	http *http.Client
}

func newOwner(tb testing.TB, file string) owner {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(tb, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(tb, err)
	return owner{tb, config.Host, client}
}

// made is an object of the cluster.
type made struct {
	fields

	path string
}

func (m made) field(names ...string) any {
	var at any = m.fields
	for _, name := range names {
		below, _ := at.(fields)
		at = below[name]
	}
	return at
}

func (m made) text(names ...string) string { return fmt.Sprint(m.field(names...)) }

// id is its id at sbx.
func (m made) id(kind string) string {
	return kind + "." + m.text("metadata", "name") + "." + m.text("metadata", "uid")[:8]
}

// condition is the status of a condition; "" for none.
func (m made) condition(kind string) string {
	all, _ := m.field("status", "conditions").([]any)
	for _, c := range all {
		if c, _ := c.(fields); c["type"] == kind {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func meta(labels map[string]string) fields {
	return fields{"name": "scene-" + strings.ToLower(rand.Text()[:12]), "labels": labels}
}

// podSpec is a pod whose main container runs a shell script.
func podSpec(script string) fields {
	return fields{"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": []any{container("main", script)}}
}

func container(name, script string) fields {
	return fields{"name": name, "image": kubernetestest.Image, "command": []string{"sh", "-c", script}, "resources": fields{"limits": fields{"memory": "32Mi"}}}
}

// do sends a request and reads the object of its answer.
func (o owner) do(ctx context.Context, method, path string, body any) (made, int) {
	o.t.Helper()
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		require.NoError(o.t, err)
		text = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, o.base+path, text)
	require.NoError(o.t, err)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := o.http.Do(r)
	require.NoError(o.t, err)
	defer func() { _ = res.Body.Close() }()
	got := made{path: path}
	require.NoError(o.t, json.NewDecoder(res.Body).Decode(&got.fields))
	return got, res.StatusCode
}

// create makes an object, which is deleted after the test. more are fields beside metadata and spec.
func (o owner) create(kind, version, plural string, metadata, spec, more fields) made {
	o.t.Helper()
	root := "/apis/" + version
	if !strings.Contains(version, "/") {
		root, kind = "/api/"+version, strings.ToUpper(kind[:1])+kind[1:]
	}
	body := fields{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
	maps.Copy(body, more)
	if spec == nil {
		delete(body, "spec")
	}
	path := root + "/namespaces/" + kubernetestest.Namespace + "/" + plural
	var got made
	var code int
	require.Eventually(o.t, func() bool { // a quota that others count up is a conflict
		got, code = o.do(o.t.Context(), http.MethodPost, path, body)
		return code != http.StatusConflict
	}, o.limit(), 10*time.Millisecond)
	require.Equal(o.t, http.StatusCreated, code, "%v", got.fields)
	got.path = path + "/" + got.text("metadata", "name")
	o.t.Cleanup(func() { o.do(context.Background(), http.MethodDelete, got.path, nil) })
	return got
}

// await reads an object until it is as it shall be.
func (o owner) await(m made, is func(made) bool) made {
	o.t.Helper()
	var now made
	require.Eventually(o.t, func() bool {
		now, _ = o.do(o.t.Context(), http.MethodGet, m.path, nil)
		return is(now)
	}, o.limit(), 100*time.Millisecond, "%v", m.path)
	return now
}

func (o owner) limit() time.Duration {
	if t, ok := o.t.(*testing.T); ok {
		return tiertest.Limit(t)
	}
	return time.Minute
}
