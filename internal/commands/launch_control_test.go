package commands

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/notify"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// plane is a control plane that answers with a status and keeps what it was told.
func plane(t *testing.T, b *bench, status int) func() []map[string]any {
	t.Helper()
	var mu sync.Mutex
	var told []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
		mu.Lock()
		defer mu.Unlock()
		told = append(told, body)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	var err error
	b.env = append(b.env, "CALLBACK_URL="+server.URL+"/s3cr3tZZZZ")
	b.control, err = notify.NewControl(notify.Net{}, server.URL+"/s3cr3tZZZZ")
	require.NoError(t, err)
	return func() []map[string]any {
		mu.Lock()
		defer mu.Unlock()
		return told
	}
}

func TestAControlPlaneHearsOfTheEnd(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	told := plane(t, b, 204)
	r := b.run(t, "run --key k-1 -o json -- true")
	require.Equal(t, 0, r.code, r.stderr)
	require.Len(t, told(), 1)
	got := told()[0]
	delete(got, "at")
	attempts, _ := got["attempts"].([]any)
	require.Len(t, attempts, 1)
	one, _ := attempts[0].(map[string]any)
	assert.Equal(t, []any{1.0, "ok", 0.0}, []any{one["n"], one["class"], one["exit_code"]})
	delete(got, "attempts")
	assert.Equal(t, map[string]any{
		"schema": "sbx.callback/v1", "event": "completed", "task": r.item(t)["task"], "key": "k-1", "state": "completed",
		"exit_code": 0.0, "publish": nil, "terminated_verified": true,
	}, got)
}

// TestAControlPlaneThatRefuses: how the task ended stays as it is, and the address is
// shown nowhere.
func TestAControlPlaneThatRefuses(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	told := plane(t, b, 404)
	r := b.run(t, "run -- true")
	assert.Equal(t, 0, r.code)
	assert.Len(t, told(), 1)
	assert.Contains(t, r.stderr, "warning: callback")
	assert.NotContains(t, r.stderr+r.stdout, "s3cr3t")
}

func TestNobodyIsToldWithoutACallback(t *testing.T) {
	t.Parallel()
	b, _ := examples(t)
	told := plane(t, b, 204)
	b.env = nil
	assert.Equal(t, 0, b.run(t, "run -- true").code)
	assert.Empty(t, told())
}

func TestWhatAControlPlaneSees(t *testing.T) {
	t.Parallel()
	one := failedTask("t-leak00000001", noon)
	one.Spec.EnvNames = []string{"TOKEN"}
	one.Attempts[0].Exit.Evidence = []sandbox.Evidence{{What: "last line", Value: "password"}}
	one.Publish = task.Publish{State: task.PublishRefused, Target: "origin=fix"}
	got := callbackOf(one, noon)
	assert.Equal(t, 125, *got.ExitCode, "what was refused is not published")
	assert.Equal(t, &callbackPublish{task.PublishRefused, "origin=fix", ""}, got.Publish)
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "password")
	assert.NotContains(t, string(raw), "TOKEN")
	one.State = task.Running
	got = callbackOf(one, noon)
	assert.Equal(t, "heartbeat", got.Event)
	assert.Nil(t, got.ExitCode)
}
