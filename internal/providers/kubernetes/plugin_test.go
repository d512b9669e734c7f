//go:build unix

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
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/tiertest"
)

const pluginVersion = "client.authentication.k8s.io/v1"

// printToken is a line of a shell that prints a token, with more fields of the status.
func printToken(token, more string) string {
	return `printf '{"apiVersion":"` + pluginVersion + `","kind":"ExecCredential","status":{"token":"%s"` + more + `}}' "` + token + `"` + "\n"
}

// plugged is a cluster whose kubeconfig names a program.
type plugged struct {
	*guarded

	dir string // in $DIR of the program
}

// count is a line of a shell that counts the runs, in $N.
const count = `echo run >>"$DIR/runs"; N=$(wc -l <"$DIR/runs" | tr -d ' ')` + "\n"

func newPlugged(t *testing.T, takes ...string) *plugged {
	t.Helper()
	return &plugged{newGuarded(t, takes...), t.TempDir()}
}

// config writes a kubeconfig with a script of a shell as its program.
func (p *plugged) config(t *testing.T, script, more string) map[string]string {
	t.Helper()
	file := filepath.Join(p.dir, "plugin")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	return map[string]string{"kubeconfig": p.kubeconfig(t, "exec: {apiVersion: "+pluginVersion+", command: sh, args: ['"+file+"'], env: [{name: DIR, value: '"+p.dir+"'}], "+more+"}"), "image": kubernetestest.Image}
}

// runs is how often the program has run.
func (p *plugged) runs(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, "runs"))
	require.NoError(t, err)
	return strings.Count(string(text), "\n")
}

func TestPluginGivesAToken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script, more string
		runs         int
	}{
		"once":                       {printToken("given-1", ""), "interactiveMode: Never", 1},
		"for an hour":                {printToken("given-1", `,"expirationTimestamp":"2999-01-01T00:00:00Z"`), "interactiveMode: Never", 1},
		"that has expired each time": {printToken("given-1", `,"expirationTimestamp":"2020-01-01T00:00:00Z"`), "interactiveMode: Never", 4},
		"nothing to read":            {"if read -r line; then exit 3; fi\n" + printToken("given-1", ""), "interactiveMode: IfAvailable", 1},
		"words on stderr":            {"echo logging in >&2\n" + printToken("given-1", ""), "interactiveMode: Never", 1},
		"a helper that stays":        {"sleep 600 & echo $! >\"$DIR/helper\"\n" + printToken("given-1", ""), "interactiveMode: Never", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlugged(t, "given-1")
			p.Add(kubernetestest.Seed{})
			c := p.open(t, p.config(t, count+tc.script, tc.more), p.deps(t), "")
			defer c.Close()
			t.Cleanup(func() { p.kill("helper") })
			for range 4 {
				_, err := c.Quota(t.Context())
				require.NoError(t, err)
			}
			assert.Equal(t, tc.runs, p.runs(t))
			assert.Equal(t, []string{"given-1"}, p.tokens())
			assert.NotContains(t, p.shown(), "given-1")
		})
	}
}

// kill ends a program whose process id is in a file.
func (p *plugged) kill(file string) {
	if pid := p.pid(file); pid > 1 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// pid is the process id in a file; 0 without one.
func (p *plugged) pid(file string) int {
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return 0
	}
	var pid int
	if json.Unmarshal(text, &pid) != nil {
		return 0
	}
	return pid
}

// A plugin that fails is a fault of kind auth, which shows neither what it has printed nor what it was made of.
func TestPluginsThatGiveNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, more, says string }{
		"rubbish":            {"echo 'hunter2 is the key'", "", "it prints no ExecCredential with a status"},
		"nothing":            {"true", "", "it prints no ExecCredential with a status"},
		"another kind":       {`echo '{"apiVersion":"` + pluginVersion + `","kind":"Secret","status":{"token":"hunter2"}}'`, "", "it prints no ExecCredential with a status"},
		"no status":          {`echo '{"apiVersion":"` + pluginVersion + `","kind":"ExecCredential","spec":{"password":"hunter2"}}'`, "", "it prints no ExecCredential with a status"},
		"another version":    {`echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"hunter2"}}'`, "", "another version than " + pluginVersion},
		"neither":            {`echo '{"apiVersion":"` + pluginVersion + `","kind":"ExecCredential","status":{}}'`, "", "neither a token nor a certificate"},
		"no pair":            {printToken("", `,"clientCertificateData":"hunter2","clientKeyData":"hunter2-key"`), "", "its certificate and key are no pair"},
		"too much":           {"head -c 70000 /dev/zero", "", "its output is larger than 64 KiB"},
		"exit 1, why":        {"echo first >&2; echo 'run: cloud login' >&2; exit 1", "", "exit status 1: run: cloud login"},
		"exit 1, escapes":    {`printf 'a \033[31mred\007 word\n' >&2; exit 1`, "", `exit status 1: a \x1b[31mred\x07 word`},
		"exit 1, its secret": {printToken("hunter2", "") + "echo got hunter2, but no >&2; exit 1", "", "exit status 1: got ***, but no"},
		"a signal":           {"kill -KILL $$", "", "signal: killed"},
		"no such program":    {"", "command: no-such-program", "no-such-program"},
		"needs a terminal":   {printToken("hunter2", ""), "interactiveMode: Always", "needs a terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlugged(t, "hunter2")
			more := tc.more
			if !strings.HasPrefix(more, "interactiveMode") {
				more = strings.TrimPrefix(more+", interactiveMode: Never", ", ")
			}
			settings := p.config(t, tc.script, more)
			if strings.HasPrefix(tc.more, "command") {
				text, err := os.ReadFile(settings["kubeconfig"])
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(settings["kubeconfig"], []byte(strings.Replace(string(text), "command: sh, ", "", 1)), 0o600))
			}
			opened, err := kubernetes.OpenWithAccount(providers.Profile{Name: "prod", Settings: settings}, p.deps(t), "")
			if c, ok := opened.(*kubernetes.Client); err == nil && ok {
				defer c.Close()
				err = failing(t, c)
			}
			assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			assert.NotEmpty(t, fault.HintOf(err))
			for _, text := range []string{err.Error(), fault.HintOf(err), p.shown()} {
				assert.NotContains(t, text, "hunter2")
				assert.NotContains(t, text, "\x1b")
			}
			assert.Empty(t, p.tokens(), "nothing is sent without credentials")
		})
	}
}

// What is refused with 401 is sent again, with its body, with the token of another run; once.
func TestPluginIsRunAgainForARefusedToken(t *testing.T) {
	t.Parallel()
	p := newPlugged(t, "given-1")
	id := p.Add(kubernetestest.Seed{Kind: "job", Name: "build"})
	c := p.open(t, p.config(t, count+printToken("given-$N", ""), "interactiveMode: Never"), p.deps(t), "")
	defer c.Close()
	require.Len(t, list(t, c), 1)
	p.take("given-2")
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	assert.Equal(t, 2, p.runs(t))
	assert.Equal(t, []string{"given-1", "given-2"}, p.tokens())
	p.take()
	err := failing(t, c)
	assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
	assert.Equal(t, 3, p.runs(t), "one more for the refused list")
	for _, token := range []string{"given-1", "given-2", "given-3"} {
		assert.NotContains(t, p.shown()+err.Error(), token)
	}
}

// A run ends with the request that needs it, and so do the programs that it has started.
func TestPluginThatHangsIsNotLeft(t *testing.T) {
	t.Parallel()
	p := newPlugged(t)
	d := p.deps(t)
	d.Net.Timeout = time.Hour
	c := p.open(t, p.config(t, "sleep 600 & echo $! >\"$DIR/child\"; echo $$ >\"$DIR/parent\"; wait", "interactiveMode: Never"), d, "")
	defer c.Close()
	defer p.kill("child")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		assert.Eventually(t, func() bool { return p.pid("parent") != 0 }, tiertest.Limit(t), 10*time.Millisecond)
		cancel(fault.New(fault.KindCanceled, "interrupted"))
	}()
	_, err := c.Quota(ctx)
	assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
	for _, file := range []string{"parent", "child"} {
		require.Eventually(t, func() bool { return gone(p.pid(file)) }, tiertest.Limit(t), 10*time.Millisecond, file)
	}
}

// gone says that a process has ended, also where nobody has read its end yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
}

// What waits for a run that fails has its error, and starts no other. One that hangs costs each request its own time.
func TestPluginRunsAreShared(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		run   func(context.Context) error
		after time.Duration
		runs  int32
		says  string
	}{
		"hangs": {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, 10 * time.Second, 16, "no answer within 10s"},
		"fails": {func(context.Context) error { time.Sleep(time.Second); return errors.New("exit status 1") }, time.Second, 1, "exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlugged(t)
			settings := p.config(t, "", "interactiveMode: Never")
			synctest.Test(t, func(t *testing.T) {
				d := p.deps(t)
				var runs atomic.Int32
				d.Run = func(ctx context.Context, _ []string, _ string, _ ...string) (string, string, error) {
					runs.Add(1)
					return "", "", tc.run(ctx)
				}
				c := p.open(t, settings, d, "")
				defer c.Close()
				began := time.Now()
				var calls sync.WaitGroup
				for range 16 {
					calls.Go(func() {
						_, err := c.Quota(t.Context())
						assert.Equal(t, fault.KindAuth, fault.KindOf(err), "%v", err)
						assert.ErrorContains(t, err, tc.says)
					})
				}
				calls.Wait()
				assert.Equal(t, tc.after, time.Since(began))
				assert.LessOrEqual(t, runs.Load(), tc.runs)
			})
		})
	}
}

// What the program is asked: the version, and the cluster where it wants that.
func TestPluginKnowsTheCluster(t *testing.T) {
	t.Parallel()
	for more, asked := range map[string]bool{"provideClusterInfo: true": true, "provideClusterInfo: false": false} {
		p := newPlugged(t, "given-1")
		c := p.open(t, p.config(t, `printf %s "$KUBERNETES_EXEC_INFO" >"$DIR/info"; `+printToken("given-1", ""), "interactiveMode: Never, "+more), p.deps(t), "")
		defer c.Close()
		require.Empty(t, list(t, c))
		text, err := os.ReadFile(filepath.Join(p.dir, "info"))
		require.NoError(t, err)
		var info made
		require.NoError(t, json.Unmarshal(text, &info.fields))
		assert.Equal(t, pluginVersion+" ExecCredential", info.text("apiVersion")+" "+info.text("kind"))
		assert.Equal(t, false, info.field("spec", "interactive"))
		require.Equal(t, asked, info.field("spec", "cluster") != nil, more)
		if asked {
			assert.Equal(t, p.server.URL, info.text("spec", "cluster", "server"))
			assert.Equal(t, base64.StdEncoding.EncodeToString(p.ca()), info.text("spec", "cluster", "certificate-authority-data"))
		}
	}
}

// A certificate is shown to the server in the handshake, and no token is sent.
func TestPluginGivesACertificate(t *testing.T) {
	t.Parallel()
	p := newPlugged(t, "")
	p.server.TLS.ClientAuth = tls.RequireAnyClientCert
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]any{"apiVersion": pluginVersion, "kind": "ExecCredential", "status": map[string]string{
		"clientCertificateData": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})),
		"clientKeyData":         string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "printed"), text, 0o600))
	p.Add(kubernetestest.Seed{})
	c := p.open(t, p.config(t, count+`cat "$DIR/printed"`, "interactiveMode: Never"), p.deps(t), "")
	defer c.Close()
	require.Len(t, list(t, c), 1)
	assert.Equal(t, 1, p.runs(t))
	assert.Equal(t, []string{""}, p.tokens())
}
