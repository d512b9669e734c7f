//go:build unix

package cli_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a task and a look may cost an engine: Podman keeps two processes for five minutes for each command in a container, and
// the memory of events of Docker's engine is short.
const (
	mostExecsOfALook = 2
	mostExecsOfATask = 3
	mostConmonsOfOne = 5
	mostCallsOfALook = 26
	mostCallsOfATask = 30
)

// countingProxy counts the requests that sbx sends to an engine or a cluster.
type countingProxy struct {
	profile string

	mu    sync.Mutex
	calls map[string]int
	ids   map[string]bool // of containers that were named in requests
}

// newCountingProxy puts a proxy in front of the engine, or the cluster, of a stage.
func newCountingProxy(t *testing.T) *countingProxy {
	t.Helper()
	p := &countingProxy{calls: map[string]int{}, ids: map[string]bool{}}
	to, transport, configure := proxied(t)
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.note(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	if to.Scheme == "https" {
		s.StartTLS()
	} else {
		s.Start()
	}
	p.profile = configure(s.Listener.Addr().String())
	return p
}

// proxied is what a proxy leads to, and makes the profile of its own address.
func proxied(t *testing.T) (*url.URL, *http.Transport, func(address string) string) {
	t.Helper()
	if engine := os.Getenv("SBX_TEST_DOCKER"); engine != "" {
		socket := strings.TrimPrefix(engine, "unix://")
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
		profile := func(address string) string {
			return "{type: docker, host: 'tcp://" + address + "', image: 'sbxtest:1', network: host" + viewOfTest() + "}"
		}
		return &url.URL{Scheme: "http", Host: "engine"}, &http.Transport{DialContext: dial}, profile
	}
	text, err := os.ReadFile(os.Getenv("SBX_TEST_KUBERNETES"))
	require.NoError(t, err)
	cluster := regexp.MustCompile(`server: "(https://[^"]*)", certificate-authority: [^}]*`)
	found := cluster.FindSubmatch(text)
	require.NotNil(t, found, "%s", text)
	to, err := url.Parse(string(found[1]))
	require.NoError(t, err)
	return to, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, func(address string) string {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(file, cluster.ReplaceAll(text, []byte(`server: "https://`+address+`", insecure-skip-tls-verify: true`)), 0o600))
		return "{type: kubernetes, kubeconfig: '" + file + "', image: 'sbxtest:1'" + viewOfTest() + "}"
	}
}

// note counts a request by its kind.
func (p *countingProxy) note(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	for i, part := range parts {
		switch {
		case regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(part):
			if parts[i] = "{id}"; parts[i-1] == "containers" {
				p.ids[part] = true
			}
		case i > 0 && slices.Contains([]string{"pods", "jobs", "sandboxes"}, parts[i-1]):
			parts[i] = "{name}"
		}
	}
	p.calls[r.Method+" "+strings.Join(parts, "/")]++
}

// take are the requests since the last call.
func (p *countingProxy) take(t *testing.T, of string) (all, execs int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(p.calls)) {
		t.Logf("%s: %4d %s", of, p.calls[what], what)
		all += p.calls[what]
		if strings.HasSuffix(what, "/{id}/exec") || strings.HasSuffix(what, "/{name}/exec") {
			execs += p.calls[what]
		}
	}
	t.Logf("%s: %d requests, %d commands inside", of, all, execs)
	p.calls = map[string]int{}
	return all, execs
}

// conmons is how many processes of Podman watch over the containers that were named.
func (p *countingProxy) conmons() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if name, _, _ := strings.Cut(string(text), "\x00"); err != nil || filepath.Base(name) != "conmon" {
			continue
		}
		for id := range p.ids {
			if strings.Contains(string(text), id) {
				n++
				break
			}
		}
	}
	return n
}

// checkCosts counts from outside what one task of twenty seconds and one look cost.
func checkCosts(t *testing.T) {
	p := newCountingProxy(t)
	home := newEngineHome(t, p.profile)
	most, over := 0, make(chan struct{})
	go func() {
		defer close(over)
		out, err := home.command(t, "run", "--provider", "real", "--", "sh", "-c", "for i in $(seq 20); do echo $i; sleep 1; done").CombinedOutput()
		assert.NoError(t, err, "%s", out)
	}()
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(100 * time.Millisecond):
			most = max(most, p.conmons())
		}
	}
	t.Logf("a task: at most %d conmon processes", most)
	assert.LessOrEqual(t, most, mostConmonsOfOne)
	all, execs := p.take(t, "a task")
	assert.LessOrEqual(t, execs, mostExecsOfATask)
	assert.LessOrEqual(t, all, mostCallsOfATask)

	made, err := home.command(t, "create", "--provider", "real", "--", "sh", "-c", "echo one; exec sleep 600").Output()
	require.NoError(t, err)
	ref := strings.TrimSpace(string(made))
	p.take(t, "create")
	for _, verb := range [][]string{{"inspect", ref}, {"ls", "--provider", "real"}, {"ls", "--provider", "real", "--stuck"}, {"top", ref}} {
		out, err := home.command(t, verb...).CombinedOutput()
		require.NoError(t, err, "%v: %s", verb, out)
		all, execs := p.take(t, fmt.Sprint(verb[0], len(verb)))
		assert.LessOrEqual(t, execs, mostExecsOfALook, "%v", verb)
		assert.LessOrEqual(t, all, mostCallsOfALook, "%v", verb)
	}
	out, err := home.command(t, "terminate", ref, "--delete", "--yes").CombinedOutput()
	require.NoError(t, err, "%s", out)
	p.take(t, "terminate")
}
