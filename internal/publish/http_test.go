package publish

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// host serves the world's remote over http on loopback, like a code host: it finishes what
// it has begun when the client is gone.
type host struct {
	url     string // without credentials
	pushing func() // called when the commands of a push arrive, before git sees them
	busy    sync.WaitGroup
	user    string // the accepted user; "" = any
	pass    string
	refuse  int // the status for a push, 0 = take it

	mu   sync.Mutex
	seen []string // each request: method, path and user
}

func (w *world) serve(h *host) *host {
	w.t.Helper()
	core := w.run(w.remote, "--exec-path")
	if _, err := exec.LookPath(filepath.Join(core, "git-http-backend")); err != nil {
		w.t.Skip("this git has no http-backend")
	}
	backend := &cgi.Handler{
		Path: filepath.Join(core, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + filepath.Dir(w.remote), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + filepath.Dir(w.remote)},
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { h.handle(backend, rw, r) }))
	w.t.Cleanup(server.Close)
	h.url = server.URL + "/remote.git"
	return h
}

func (h *host) handle(backend http.Handler, rw http.ResponseWriter, r *http.Request) {
	user, pass, _ := r.BasicAuth()
	h.mu.Lock()
	h.seen = append(h.seen, r.Method+" "+r.URL.Path+" "+user)
	h.mu.Unlock()
	if h.user != "" && (user != h.user || pass != h.pass) {
		rw.Header().Set("WWW-Authenticate", "Basic")
		http.Error(rw, "no", http.StatusUnauthorized)
		return
	}
	if strings.Contains(r.URL.String(), "git-receive-pack") {
		if h.refuse != 0 {
			http.Error(rw, "no", h.refuse)
			return
		}
		if r.Method == http.MethodPost {
			h.busy.Add(1)
			defer h.busy.Done()
			if h.pushing != nil {
				h.pushing()
			}
		}
	}
	backend.ServeHTTP(rw, r)
}

func (h *host) with(userinfo string) string {
	return strings.Replace(h.url, "://", "://"+userinfo+"@", 1)
}

func TestCredentialsInTheAddress(t *testing.T) {
	t.Parallel()
	const token = "s3cr'et$tok\"en%"
	w := newWorld(t)
	h := w.serve(&host{user: "bot", pass: token})
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.with("bot:s3cr%27et$tok%22en%25")
	require.NoError(t, w.git.Probe(t.Context(), p.Target))
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
	marker := w.run(w.remote, "cat-file", "-p", "refs/sbx/fence/t1")
	assert.NotContains(t, marker, "bot")
	m, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
	require.NoError(t, err)
	assert.Equal(t, Published, m.Verdict)
	assert.True(t, p.Target.HasSecret())
	assert.NotContains(t, p.Target.String()+p.Target.GoString(), "s3cr")
}

func TestNoCredentialsInErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{user: "bot", pass: "right"})
	p := w.work("t1", "agent/t1")
	for _, userinfo := range []string{"botname:wr0ngpassword", "t0kenasname", "t0kenasname:", "a%40b:wr0ng%2Fword"} {
		for _, remote := range []string{h.with(userinfo), "https://" + userinfo + "@127.0.0.1:9/x.git", "https://" + userinfo + "@[bad/x", "ftp://" + userinfo + "@h/x", "ssh://" + userinfo + "@127.0.0.1:9/x"} {
			p.Target.Remote = remote
			_, err := w.git.Publish(t.Context(), p)
			require.Error(t, err)
			_, looked := w.look("t1", p.Target)
			_, parsed := ParseTarget(remote + "=x y")
			for _, text := range []string{err.Error(), looked.Error(), parsed.Error(), fault.HintOf(err), fault.HintOf(looked), fault.HintOf(parsed)} {
				for _, secret := range []string{"wr0ng", "t0ken"} {
					if strings.HasPrefix(remote, "ssh://t0ken") {
						continue // an ssh login is a name
					}
					assert.NotContains(t, text, secret, userinfo)
				}
			}
			if strings.HasPrefix(remote, "http://") {
				assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
			}
		}
	}
}

// They are in no argument of git or of its children, and no helper stores them.
func TestCredentialsGoNowhereElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{user: "bot", pass: "s3cret"})
	trace, helper := w.traced(), filepath.Join(t.TempDir(), "asked")
	w.run(w.inside, "config", "--file", filepath.Join(filepath.Dir(w.remote), ".gitconfig"), "credential.helper", "!cat >>"+helper+"; :")
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.with("bot:s3cret")
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.NoFileExists(t, helper)
	text, err := os.ReadFile(trace)
	require.NoError(t, err)
	assert.Contains(t, string(text), "git-remote-http")
	assert.NotContains(t, string(text), "s3cret")
}

// traced makes git log the commands it runs.
func (w *world) traced() (trace string) {
	w.t.Helper()
	dir := w.t.TempDir()
	trace = filepath.Join(dir, "trace")
	w.git.Program = filepath.Join(dir, "git")
	require.NoError(w.t, writeProgram(w.git.Program, "#!/bin/sh\nGIT_TRACE="+trace+" exec git \"$@\"\n"))
	return trace
}

// The operator's own rewriting of addresses may add a token: neither git nor its helpers
// get it in an argument.
func TestCredentialsOfARewrittenAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule, prefix string
		file         bool // it is in the operator's file, not in the environment
	}{
		"of all of a host":       {"insteadOf", "/", false},
		"of pushes":              {"pushInsteadOf", "/", false},
		"of this one repository": {"insteadOf", "/remote.git", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.serve(&host{user: "x-access-token", pass: "s3cret"})
			root := strings.TrimSuffix(h.url, "/remote.git") + tc.prefix
			key := "url." + strings.Replace(root, "://", "://x-access-token:s3cret@", 1) + "." + tc.rule
			if tc.file {
				w.run(w.inside, "config", "--file", filepath.Join(filepath.Dir(w.remote), ".gitconfig"), key, root)
			} else {
				w.git.Environ = append(w.git.Environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0="+key, "GIT_CONFIG_VALUE_0="+root)
			}
			trace := w.traced()
			p := w.work("t1", "agent/t1")
			p.Target.Remote = h.url
			require.NoError(t, w.git.Probe(t.Context(), p.Target))
			w.run(w.inside, "remote", "add", "web", h.url)
			named, err := w.git.Resolve(t.Context(), Target{"web", "agent/t1"}, w.inside)
			require.NoError(t, err)
			assert.NotContains(t, named.String(), "s3cret", "what goes into the record of the task")
			_, err = w.git.Publish(t.Context(), Push{Task: "t1", Target: named, Bundle: p.Bundle})
			require.NoError(t, err)
			assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
			text, err := os.ReadFile(trace)
			require.NoError(t, err)
			assert.Contains(t, string(text), "git-remote-http")
			assert.NotContains(t, string(text), "s3cret")
			s, err := w.git.openScratch(t.Context(), p.Target)
			require.NoError(t, err)
			defer s.remove()
			assert.Equal(t, credentials{"x-access-token", "s3cret"}, s.credentials)
			assert.NotContains(t, s.remote, "s3cret")
		})
	}
}

func TestSecretsAreInNoArgument(t *testing.T) {
	t.Parallel()
	config, env := credentials{user: "bot", password: "s3cret"}.gitSettings()
	assert.NotContains(t, strings.Join(config, " "), "s3cret")
	assert.Contains(t, env, "SBX_GIT_PASSWORD=s3cret")
	remote, given := splitCredentials("https://bot:s3cret@h/x")
	assert.Equal(t, "https://h/x", remote)
	assert.Equal(t, credentials{user: "bot", password: "s3cret"}, given)
	config, _ = credentials{user: "t0ken"}.gitSettings()
	got := strings.Join(gitArguments("/scratch"), " ")
	assert.NotContains(t, got, "t0ken")
	assert.Contains(t, withConfig([]string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=c"}, config), "GIT_CONFIG_KEY_1=credential.username")
}

// The operator's own helper is asked when the address has no credentials.
func TestOperatorsCredentialHelper(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{user: "bot", pass: "kept"})
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.url
	_, err := w.git.Publish(t.Context(), p)
	require.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
	w.run(w.inside, "config", "--file", filepath.Join(filepath.Dir(w.remote), ".gitconfig"), "credential.helper", `!printf 'username=bot\npassword=kept\n'; :`)
	_, err = w.git.Publish(t.Context(), p)
	require.NoError(t, err)
}

func TestCredentialsThatMayReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{refuse: http.StatusForbidden})
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.url
	assert.Equal(t, fault.KindAuth, fault.KindOf(w.git.Probe(t.Context(), p.Target)), "seen before an agent has run for an hour")
	_, err := w.git.Publish(t.Context(), p)
	assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
	require.NotErrorIs(t, err, ErrInDoubt)
	_, err = w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
	assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
}
