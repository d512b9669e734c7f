//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cli"
	"sbx/internal/poll"
	"sbx/internal/process"
	"sbx/internal/store"
	"sbx/internal/testkit/tiertest"
)

// crowded is a machine with two sandboxes too many, of which one alert fires at the second look, and
// a service that keeps what it gets.
type crowded struct {
	home    string
	profile string
	server  *httptest.Server
	extra   []string // of the environment

	mu   sync.Mutex
	got  []string
	down bool // it answers 500
}

func newCrowded(t *testing.T, extra ...string) *crowded {
	t.Helper()
	c := &crowded{home: t.TempDir(), profile: "box-" + strings.ToLower(rand.Text()[:6]), extra: extra} // a shared store keeps its alerts
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.down {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		c.got = append(c.got, body.String())
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(c.server.Close)
	require.NoError(t, os.WriteFile(filepath.Join(c.home, "c.yaml"), []byte(
		"providers: {"+c.profile+": {type: local, owned: all}}\nlaunch: "+c.profile+"\nthresholds: {active: 1, active_normal: 1, sustained: 1ms}\nnotify: {webhook_env: HOOK}\n"), 0o600))
	t.Cleanup(func() { endAll(filepath.Join(c.home, "state")) })
	for range 2 {
		out, err := c.command(t, "create", "--", "sleep", "300").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return c
}

// command is a process of sbx.
func (c *crowded) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), tiertest.Limit(t))
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, executable())
	cmd.Args, cmd.Dir = append([]string{"sbx"}, args...), c.home
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "SBX_STATE_DIR=" + filepath.Join(c.home, "state"), "SBX_CONFIG=" + filepath.Join(c.home, "c.yaml"),
		"HOOK=" + c.server.URL + "/hook", "GORACE=" + promptRace(),
	}, c.extra...)
	return cmd
}

// told counts the messages of alerts.
func (c *crowded) told() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, body := range c.got {
		n += strings.Count(body, `"kind":"alert"`)
	}
	return n
}

func (c *crowded) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// TestManyProcessesNotifyOnce: real processes that look at once, on one store.
func TestManyProcessesNotifyOnce(t *testing.T) {
	t.Parallel()
	stores := map[string][]string{"SQLite": nil}
	if url := os.Getenv("SBX_TEST_POSTGRES"); url != "" {
		stores["Postgres"] = []string{"SBX_STORE_URL=" + url}
	}
	for name, extra := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowded(t, extra...)
			require.Equal(t, 10, codeOf(c.command(t, "verify", "-q").Run()))
			assert.Zero(t, c.told(), "it is pending")
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					out, err := c.command(t, "verify", "-q").CombinedOutput()
					assert.Equal(t, 10, codeOf(err), "%s", out)
				})
			}
			all.Wait()
			require.Equal(t, 10, codeOf(c.command(t, "verify", "-q").Run()))
			assert.Equal(t, 1, c.told(), "%s", c.got)
		})
	}
}

// TestKilledBetweenClaimAndSending: a process that holds a claim is killed while its answer is held up.
// It has told nobody; after a minute another process does, once.
func TestKilledBetweenClaimAndSending(t *testing.T) {
	t.Parallel()
	c := newCrowded(t)
	require.Equal(t, 10, codeOf(c.command(t, "verify", "-q").Run()))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	pipe := int(w.Fd())
	require.NoError(t, syscall.SetNonblock(pipe, true))
	for buffer := make([]byte, 4096); err == nil; { // nobody reads, and there is no room
		_, err = syscall.Write(pipe, buffer)
	}
	require.NoError(t, syscall.SetNonblock(pipe, false))
	cmd := c.command(t, "verify")
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	var claim struct {
		Send  string    `json:"send"`
		Until time.Time `json:"send_until"`
	}
	read := func() {
		st, err := store.New(store.Options{StateDir: filepath.Join(c.home, "state"), Now: time.Now})
		require.NoError(t, err)
		defer func() { _ = st.Close() }()
		doc, err := st.Doc(t.Context(), "alert", "sandbox_leak_detected/"+c.profile)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(doc.Body, &claim))
	}
	for read(); claim.Send == ""; read() {
		require.NoError(t, poll.Sleep(t.Context(), 10*time.Millisecond))
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	assert.Zero(t, c.told(), "the answer comes first")

	c.verifyAt(t, claim.Until.Add(-time.Second))
	assert.Zero(t, c.told(), "its claim holds for a minute")
	c.setDown(true)
	c.verifyAt(t, claim.Until.Add(time.Second))
	c.setDown(false)
	c.verifyAt(t, claim.Until.Add(30*time.Second))
	assert.Zero(t, c.told(), "the second process has failed, and its claim holds")
	c.verifyAt(t, claim.Until.Add(2*time.Minute))
	c.verifyAt(t, claim.Until.Add(4*time.Minute))
	assert.Equal(t, 1, c.told())
}

// verifyAt is a verify in this process, whose clock stands at a time.
func (c *crowded) verifyAt(t *testing.T, at time.Time) {
	t.Helper()
	environ := c.command(t).Env
	var out, errs said
	code := cli.Run(process.Process{
		Args: []string{"sbx", "verify"}, Environ: environ, Home: c.home, Workdir: c.home, Host: "host-2", PID: os.Getpid(), UID: os.Getuid(),
		Now:    func() time.Time { return at },
		Stdout: process.Stream{Writer: &out}, Stderr: process.Stream{Writer: &errs},
	}, cli.Types())
	require.Equal(t, 10, code, "%s%s", out.String(), errs.String())
}
