package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cli"
	"sbx/internal/process"
)

// said is an output that others may read meanwhile.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// told is what a service has got, and what the verb had printed by then.
type told struct{ path, body, stdout, stderr string }

// watched is a machine whose only provider does not answer, and whose services do.
type watched struct {
	home           string
	now            time.Time
	status         int // of the webhook
	mu             sync.Mutex
	told           []told
	stdout, stderr *said
	server         *httptest.Server
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{home: t.TempDir(), now: time.Now(), status: http.StatusAccepted}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, told{r.URL.Path, string(body), w.stdout.String(), w.stderr.String()})
		if r.URL.Path == "/hook" {
			rw.WriteHeader(w.status)
		}
	}))
	t.Cleanup(w.server.Close)
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "c.yaml"), []byte(
		"providers: {away: {type: e2b, url: http://127.0.0.1:1, token_env: TOKEN, owned: all}}\nnotify: {webhook_env: HOOK, ping_env: PING}\n"), 0o600))
	return w
}

// sbx runs one verb; what was told before is forgotten.
func (w *watched) sbx(args ...string) (code int) {
	w.told, w.stdout, w.stderr = nil, &said{}, &said{}
	return cli.Run(process.Process{
		Args: append([]string{"sbx"}, args...), Home: w.home, Workdir: w.home, Host: "host-1", PID: os.Getpid(), Now: func() time.Time { return w.now },
		Environ: []string{"TOKEN=e2b_0123456789abcdef", "HOOK=" + w.server.URL + "/hook", "PING=" + w.server.URL + "/ping", "SBX_CONFIG=" + filepath.Join(w.home, "c.yaml"), "SBX_STATE_DIR=" + filepath.Join(w.home, "state")},
		Stdout:  process.Stream{Writer: w.stdout}, Stderr: process.Stream{Writer: w.stderr},
	}, cli.Types())
}

// heard are the messages of a path whose body has a text.
func (w *watched) heard(path, text string) (list []told) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.told {
		if m.path == path && strings.Contains(m.body, text) {
			list = append(list, m)
		}
	}
	return list
}

// TestAnswersComeBeforeMessages: what a verb has to tell people and watchdogs is sent once its answer
// is printed, a failure is a warning after it, and the exit code is that of the answer.
func TestAnswersComeBeforeMessages(t *testing.T) {
	t.Parallel()
	w := newWatched(t)
	for range 3 {
		require.Equal(t, 3, w.sbx("cleanup", "--stuck", "--yes"), w.stderr)
		assert.Len(t, w.heard("/ping/start", ""), 1)
		require.Len(t, w.heard("/ping/3", ""), 1)
		require.Len(t, w.heard("/hook", `"kind":"partial"`), 1)
		for _, m := range append(w.heard("/hook", ""), w.heard("/ping/3", "")...) {
			assert.Contains(t, m.stderr, "sbx: error: away: list: ", m.path)
		}
		w.now = w.now.Add(5 * time.Minute)
	}
	require.Len(t, w.heard("/hook", `"alert":"cleanup_failing"`), 1)

	w.status = http.StatusInternalServerError
	require.Equal(t, 3, w.sbx("cleanup", "--stuck", "--yes", "-o", "json", "--ping", w.server.URL+"/mine"), w.stderr)
	require.NotEmpty(t, w.heard("/mine/3", ""))
	for _, m := range w.heard("/mine/3", "") {
		assert.True(t, strings.HasSuffix(m.stdout, "}\n"), "the document is complete: %s", m.stdout)
	}
	assert.Regexp(t, `(?s)warning: .*webhook: .*500`, w.stderr)
	require.Equal(t, 3, w.sbx("reconcile", "--check", "-o", "json"), w.stderr)
	require.Len(t, w.heard("/hook", `"verb":"reconcile"`), 1)
	assert.True(t, strings.HasSuffix(w.heard("/hook", "")[0].stdout, "}\n"))

	// an alert that could not be sent is sent by verify
	require.NoError(t, os.RemoveAll(filepath.Join(w.home, "state")))
	w.fail(3)
	require.Equal(t, 10, w.sbx("verify", "-o", "json"), w.stderr)
	assert.Empty(t, w.heard("/hook", ""), "another process may still send")
	w.now, w.status = w.now.Add(time.Minute), http.StatusAccepted
	require.Equal(t, 10, w.sbx("verify", "-o", "json"), w.stderr)
	require.Len(t, w.heard("/hook", `"alert":"cleanup_failing"`), 1)
	assert.True(t, strings.HasSuffix(w.told[0].stdout, "}\n"), "the document is complete: %s", w.told[0].stdout)
}

// fail has so many cleanups fail.
func (w *watched) fail(n int) {
	for range n {
		w.sbx("cleanup", "--stuck", "--yes", "-q")
	}
}
