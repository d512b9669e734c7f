package cli

import (
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

	"sbx/internal/fault"
	"sbx/internal/notify"
	"sbx/internal/process"
)

// TestTheConfigurationSaysWhoIsTold: each setting reaches its own service, a ping
// that is named on the command line comes instead of the configured one, and a
// variable that is not set is a complaint that silences nobody else.
func TestTheConfigurationSaysWhoIsTold(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	file := filepath.Join(home, "c.yaml")
	require.NoError(t, os.WriteFile(file, []byte("notify: {slack_env: A, pagerduty_env: B, pagerduty_url: "+server.URL+
		"/pd, webhook_env: C, ping_env: NONE}\n"), 0o600))
	a := newApp(t.Context(), process.Process{
		Args: []string{"sbx"}, Home: home, Workdir: home, Now: time.Now,
		Environ: []string{"A=" + server.URL + "/slack", "B=key", "C=" + server.URL + "/hook", "SBX_CONFIG=" + file},
	}, Types())
	n, err := a.openNotifier(server.URL + "/mine")
	require.ErrorContains(t, err, "notify.ping_env: the variable NONE is not set")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	t.Cleanup(n.Close)
	require.NoError(t, n.Send(t.Context(), notify.Message{Verb: "cleanup", Kind: notify.KindFailed, At: time.Now()}))
	require.NoError(t, n.PingEnd(t.Context(), "", 0, ""))
	assert.ElementsMatch(t, []string{"/slack", "/pd/v2/enqueue", "/hook", "/mine"}, asked)
	p, err := a.printer()
	require.NoError(t, err)
	assert.Contains(t, p.Secrets, server.URL+"/mine")
}

// TestTheControlPlaneIsTheConfigured: CALLBACK_URL leads there, and without it there is
// none.
func TestTheControlPlaneIsTheConfigured(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Idempotency-Key")
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	with := func(environ ...string) *app {
		return newApp(t.Context(), process.Process{Args: []string{"sbx"}, Home: home, Workdir: home, Now: time.Now, Environ: environ}, Types())
	}
	control, err := with().openControlPlane()
	require.NoError(t, err)
	assert.Nil(t, control)

	a := with("CALLBACK_URL=" + server.URL + "/done?key=s3cr3tZZZZ")
	control, err = a.openControlPlane()
	require.NoError(t, err)
	t.Cleanup(control.Close)
	require.NoError(t, control.Ended(t.Context(), "t-1", "x"))
	assert.Equal(t, "POST /done t-1", <-asked)
	p, err := a.printer()
	require.NoError(t, err)
	assert.Contains(t, strings.Join(p.Secrets, " "), "s3cr3tZZZZ", "it is shown nowhere")
	c, err := a.config()
	require.NoError(t, err)
	assert.Equal(t, server.URL+"/done?key=s3cr3tZZZZ", callbackURL(c), "and agents are told of it")
}
