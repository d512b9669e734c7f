package vercel_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/vercel"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/verceltest"
	"sbx/internal/testkit/wiretest"
	"sbx/internal/testkit/wiretest/apispec"
)

func logs(t *testing.T, c *vercel.Client, id string, q providers.LogQuery) []string {
	t.Helper()
	var got []string
	for l, err := range c.Logs(t.Context(), id, q) {
		require.NoError(t, err)
		got = append(got, l.Stream+" "+l.Text)
	}
	return got
}

func shell(script string) providers.Command {
	return providers.Command{Args: []string{"sh", "-c", script}}
}

// TestCommandLogs: a sandbox of another client has the logs of its commands, without the scripts of
// sbx.
func TestCommandLogs(t *testing.T) {
	t.Parallel()
	contract := apispec.LoadContract(t, filepath.Join("testdata", "contract-logs.txt"), spec())
	f := verceltest.New(t, verceltest.Options{Wire: wiretest.Options{Contract: contract}})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	for _, script := range []string{"echo one; echo two >&2", "printf three"} {
		_, err := c.Exec(t.Context(), id, shell(script))
		require.NoError(t, err)
	}
	_, err := c.Usage(t.Context(), id)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"stdout one", "stderr two", "stdout three"}, logs(t, c, id, providers.LogQuery{}))
	assert.Equal(t, []string{"stdout three"}, logs(t, c, id, providers.LogQuery{Tail: 1}))
	assert.Empty(t, logs(t, c, id, providers.LogQuery{Since: time.Now().Add(time.Hour)}))
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	var last error
	for _, last = range c.Logs(t.Context(), id, providers.LogQuery{}) {
		continue
	}
	assert.Equal(t, fault.KindGone, fault.KindOf(last), "the logs go with the session")
	assert.Contains(t, fault.HintOf(last), "before `sbx terminate`")
}

// TestFollowingCommands: a command without an end does not delay others, and the log ends with the
// session.
func TestFollowingCommands(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	server, stop := context.WithCancel(t.Context())
	defer stop()
	up := make(chan struct{})
	go func() {
		_, _ = c.Exec(server, id, providers.Command{Args: []string{"sh", "-c", "echo listening; sleep 600"}, Stdout: closing{up}})
	}()
	<-up
	got := make(chan string, 10)
	go func() {
		defer close(got)
		for l, err := range c.Logs(t.Context(), id, providers.LogQuery{Follow: true}) {
			if err != nil {
				got <- err.Error()
				return
			}
			got <- l.Text
		}
	}()
	assert.Equal(t, "listening", <-got)
	_, err := c.Exec(t.Context(), id, shell("echo beside"))
	require.NoError(t, err)
	assert.Equal(t, "beside", <-got)
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	_, more := <-got
	assert.False(t, more, "the session is over")
}

// TestAnOpenLineOfACommandIsFollowed: a prompt shows although its command waits.
func TestAnOpenLineOfACommandIsFollowed(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	running, stop := context.WithCancel(t.Context())
	defer stop()
	up := make(chan struct{})
	go func() {
		_, _ = c.Exec(running, id, providers.Command{Args: []string{"sh", "-c", "printf 'sure? '; sleep 600"}, Stdout: closing{up}})
	}()
	<-up
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	for l, err := range c.Logs(ctx, id, providers.LogQuery{Follow: true, Open: true}) {
		require.NoError(t, err)
		assert.Equal(t, sandbox.LogLine{Stream: "stdout", Text: "sure? ", OpenBytes: 6}, l)
		return
	}
	assert.Fail(t, "the log has ended")
}

// TestALogWhoseConnectionIsLost: no line comes twice or is lost.
func TestALogWhoseConnectionIsLost(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	_, err := c.Exec(t.Context(), id, shell("echo one; echo two; printf three"))
	require.NoError(t, err)
	f.Break(wiretest.Fault{Route: "GET /v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", Trouble: wiretest.TroubleTruncate, Times: 1})
	assert.Equal(t, []string{"stdout one", "stdout two", "stdout three"}, logs(t, c, id, providers.LogQuery{}))
	f.Break(wiretest.Fault{Route: "GET /v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", Trouble: wiretest.TroubleTruncate, Times: 100})
	var last error
	for _, last = range c.Logs(t.Context(), id, providers.LogQuery{}) {
		continue
	}
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(last), "a log that is cut short is no whole one")
}

// TestALogOfWhatRunsOn: without Follow a read ends when nothing comes for a while.
func TestALogOfWhatRunsOn(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := make(chan struct{})
	go func() {
		_, _ = c.Exec(ctx, id, providers.Command{Args: []string{"sh", "-c", "echo begun; printf half; sleep 600"}, Stdout: closing{up}})
	}()
	<-up
	assert.Equal(t, []string{"stdout begun", "stdout half"}, logs(t, c, id, providers.LogQuery{}))
}
