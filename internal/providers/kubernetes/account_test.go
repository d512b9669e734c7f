package kubernetes_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/testkit/kubernetestest"
)

// guarded is a fake behind TLS that takes the tokens of a list; the answer to others repeats them.
type guarded struct {
	*kubernetestest.Fake

	server *httptest.Server
	mu     sync.Mutex
	takes  []string
	asked  []string // the token of each request, in order
	lines  []string // of `-v`
}

func newGuarded(t *testing.T, takes ...string) *guarded {
	t.Helper()
	g := &guarded{Fake: kubernetestest.New(t, kubernetestest.Options{}), takes: takes}
	g.server = httptest.NewTLSServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.server.Close)
	return g
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !g.admits(token) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "reason": "Unauthorized", "message": "the token " + token + " is not known", "code": http.StatusUnauthorized})
		return
	}
	r.Header.Set("Authorization", "Bearer "+kubernetestest.Token)
	g.ServeHTTP(w, r)
}

func (g *guarded) admits(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, token)
	return slices.Contains(g.takes, token)
}

// take changes the tokens that are known.
func (g *guarded) take(tokens ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.takes = tokens
}

// tokens are the tokens of the requests so far, each once.
func (g *guarded) tokens() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, token := range g.asked {
		if len(all) == 0 || all[len(all)-1] != token {
			all = append(all, token)
		}
	}
	return all
}

// shown is what `-v` has shown.
func (g *guarded) shown() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.lines, "\n")
}

func (g *guarded) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.server.Certificate().Raw})
}

// deps are the dependencies of a process in a pod of the cluster.
func (g *guarded) deps(t *testing.T) providers.Deps {
	t.Helper()
	at, err := url.Parse(g.server.URL)
	require.NoError(t, err)
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": at.Hostname(), "KUBERNETES_SERVICE_PORT": at.Port()}
	return providers.Deps{
		Now: time.Now, Run: process.Process{Environ: os.Environ()}.Capture,
		Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok },
		Net: httpx.Net{Trace: func(line string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.lines = append(g.lines, line)
		}},
	}
}

// account writes the folder that a pod has.
func (g *guarded) account(t *testing.T, token string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"token": token, "ca.crt": string(g.ca()), "namespace": kubernetestest.Namespace} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func (g *guarded) open(t *testing.T, settings map[string]string, d providers.Deps, account string) *kubernetes.Client {
	t.Helper()
	p, err := kubernetes.OpenWithAccount(providers.Profile{Name: "prod", Type: kubernetes.TypeName, Settings: settings}, d, account)
	require.NoError(t, err)
	c, ok := p.(*kubernetes.Client)
	require.True(t, ok)
	return c
}

// failing is the error of a list.
func failing(t *testing.T, c *kubernetes.Client) error {
	t.Helper()
	for _, err := range c.List(t.Context(), providers.Query{}) {
		if err != nil {
			return err
		}
	}
	require.Fail(t, "the list does not fail")
	return nil
}

// A token in a file is read again when it was renewed, and each of its texts is hidden.
func TestTokensThatAreRenewed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the account of a pod", "tokenFile of a kubeconfig"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const first, second = "first-7f3ac2d1", "second-7f3ac2d1"
			g := newGuarded(t, first)
			g.Add(kubernetestest.Seed{})
			folder := g.account(t, first)
			settings := map[string]string{}
			if strings.HasPrefix(name, "tokenFile") {
				settings["kubeconfig"] = g.kubeconfig(t, "tokenFile: '"+filepath.Join(folder, "token")+"'")
			}
			synctest.Test(t, func(t *testing.T) {
				d := g.deps(t)
				d.Net.Dial = g.dialer(t)
				c := g.open(t, settings, d, folder)
				defer c.Close()
				require.Len(t, list(t, c), 1)
				require.NoError(t, os.WriteFile(filepath.Join(folder, "token"), []byte(second+"\n"), 0o600))
				g.take(second)
				time.Sleep(time.Minute)
				require.Len(t, list(t, c), 1)
				g.take()
				err := failing(t, c)
				assert.Equal(t, fault.KindAuth, fault.KindOf(err))
				require.ErrorContains(t, err, "the token *** is not known")
			})
			assert.Equal(t, []string{first, second}, g.tokens())
			assert.Contains(t, g.shown(), "< 401")
			for _, token := range []string{first, second} {
				assert.NotContains(t, g.shown(), token)
			}
		})
	}
}

// pipes are the connections of a server in virtual time, in which nothing waits for a network.
type pipes struct {
	open   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.open:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

// dialer serves the cluster within a bubble, until the test ends.
func (g *guarded) dialer(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	p := &pipes{open: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: time.Hour, ErrorLog: log.New(io.Discard, "", 0)}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(tls.NewListener(p, &tls.Config{Certificates: g.server.TLS.Certificates})) })
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		served.Wait()
	})
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		p.open <- theirs
		return ours, nil
	}
}

// kubeconfig writes one for the cluster, with these fields of its user.
func (g *guarded) kubeconfig(t *testing.T, user string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	ca := filepath.Join(filepath.Dir(file), "ca.crt")
	require.NoError(t, os.WriteFile(ca, g.ca(), 0o600))
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: c, cluster: {server: '"+g.server.URL+"', certificate-authority: '"+ca+"'}}]\n"+
		"users: [{name: u, user: {"+user+"}}]\ncontexts: [{name: c, context: {cluster: c, user: u, namespace: "+kubernetestest.Namespace+"}}]\n"), 0o600))
	return file
}

func TestAccountOfAPod(t *testing.T) {
	t.Parallel()
	const token = "token-of-a-pod"
	g := newGuarded(t, token)
	whole := g.account(t, token)
	without := func(name string) string {
		dir := g.account(t, token)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
		return dir
	}
	for name, tc := range map[string]struct {
		folder   string
		settings map[string]string
		outside  bool // no variable of a pod is set
		fails    string
		shows    string // of doctor
	}{
		"whole":                    {folder: whole, shows: "context of the pod, namespace " + kubernetestest.Namespace},
		"another namespace":        {folder: whole, settings: map[string]string{"namespace": "others"}, shows: "namespace others"},
		"no namespace":             {folder: without("namespace"), shows: "namespace default"},
		"no token":                 {folder: without("token"), fails: "the credentials of the pod's account cannot be used"},
		"no authority":             {folder: without("ca.crt"), fails: "the credentials of the pod's account cannot be used"},
		"no folder":                {folder: filepath.Join(whole, "none"), fails: "the credentials of the pod's account cannot be used"},
		"no pod and no kubeconfig": {folder: whole, outside: true, fails: "there is no kubeconfig with a context"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := g.deps(t)
			if tc.outside {
				d.Lookup = nil
			}
			if tc.fails != "" {
				_, err := kubernetes.OpenWithAccount(providers.Profile{Name: "prod", Settings: tc.settings}, d, tc.folder)
				assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, tc.fails)
				assert.NotEmpty(t, fault.HintOf(err))
				assert.Equal(t, !tc.outside, strings.Contains(fault.HintOf(err), "automountServiceAccountToken"))
				return
			}
			c := g.open(t, tc.settings, d, tc.folder)
			defer c.Close()
			assert.Contains(t, c.Check(t.Context())[0].Message, tc.shows)
		})
	}
}
