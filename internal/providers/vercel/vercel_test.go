package vercel_test

import (
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/vercel"
	"sbx/internal/providers/vercel/verceltest"
	"sbx/internal/providers/wiretest"
	"sbx/internal/sandbox"
)

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		f := verceltest.New(t, verceltest.Options{})
		id := f.Add(verceltest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: open(t, f.Listen(), httpx.Net{}), ID: id, Stream: "POST /v2/sandboxes/sessions/{id}/cmd",
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}

// TestCommandLogs: a sandbox that sbx did not start has the logs of its commands.
func TestCommandLogs(t *testing.T) {
	t.Parallel()
	contract := wiretest.LoadContract(t, filepath.Join("testdata", "contract-logs.txt"), spec())
	f := verceltest.New(t, verceltest.Options{Wire: wiretest.Options{Contract: contract}})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	for _, script := range []string{"echo one; echo two >&2", "printf three"} {
		_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", script}})
		require.NoError(t, err)
	}
	read := func(q providers.LogQuery) []string {
		var got []string
		for l, err := range c.Logs(t.Context(), id, q) {
			require.NoError(t, err)
			got = append(got, l.Stream+" "+l.Text)
		}
		return got
	}
	assert.ElementsMatch(t, []string{"stdout one", "stderr two", "stdout three"}, read(providers.LogQuery{}))
	assert.Equal(t, []string{"stdout three"}, read(providers.LogQuery{Tail: 1}))
	assert.Len(t, read(providers.LogQuery{Follow: true}), 3, "following ends with the last command")
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	var last error
	for _, last = range c.Logs(t.Context(), id, providers.LogQuery{}) {
		continue
	}
	assert.Equal(t, fault.KindGone, fault.KindOf(last), "the logs go with the session")
}

// TestAResumedSandboxIsNotTheJudgedOne: what runs under a name may have changed
// since it was listed.
func TestAResumedSandboxIsNotTheJudgedOne(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	judged := f.Add(verceltest.Seed{Name: "worker", Persistent: true, Status: "stopped", Age: time.Hour})
	now := f.Resume("worker")
	err := c.Terminate(t.Context(), judged, providers.TerminateOptions{Delete: true})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.Equal(t, fault.KindGone, fault.KindOf(c.Terminate(t.Context(), judged, providers.TerminateOptions{})))
	got, err := c.Get(t.Context(), "worker")
	require.NoError(t, err)
	assert.Equal(t, now, got.ID)
	assert.Equal(t, sandbox.StateRunning, got.State, "the new session was hit")
	age, _ := got.Age(time.Now().Add(time.Second))
	assert.Less(t, age, time.Minute, "the age is that of what runs, not of its name")
}

// TestAStopKeepsWhatDeleteDestroys: only Delete takes a persistent sandbox's
// snapshot (DESIGN section 2, Ending).
func TestAStopKeepsWhatDeleteDestroys(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{Name: "worker", Persistent: true})
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	got, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateStopped, got.State)
	h, err := c.Probe(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, providers.ConditionResumable, h.Condition)
	assert.Empty(t, f.Calls("DELETE /v2/sandboxes/{name}"))
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	_, err = c.Get(t.Context(), "worker")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
}

func TestHealthByStatusAndCode(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]providers.Condition{
		"running": providers.ConditionHealthy, "pending": providers.ConditionWait, "stopping": providers.ConditionWait, "snapshotting": providers.ConditionWait,
		"stopped": providers.ConditionRecreate, "failed": providers.ConditionRecreate, "pondering": providers.ConditionUnknown,
	} {
		f := verceltest.New(t, verceltest.Options{StopFor: verceltest.Forever})
		c := open(t, f.Listen(), httpx.Net{})
		h, err := c.Probe(t.Context(), f.Add(verceltest.Seed{Status: status}))
		require.NoError(t, err)
		assert.Equal(t, want, h.Condition, status)
		assert.NotEmpty(t, h.Evidence)
	}
	for name, tc := range map[string]struct {
		fault wiretest.Fault
		want  providers.Condition
	}{
		"410 stopped":      {wiretest.Fault{Status: 410, Body: `{"error":{"code":"sandbox_stopped","message":"x"}}`}, providers.ConditionResumable},
		"410 snapshot":     {wiretest.Fault{Status: 410, Body: `{"error":{"code":"snapshot_not_found","message":"x"}}`}, providers.ConditionRecreate},
		"422 stopping":     {wiretest.Fault{Status: 422, Body: `{"error":{"code":"sandbox_stopping","message":"x"}}`}, providers.ConditionWait},
		"422 snapshotting": {wiretest.Fault{Status: 422, Body: `{"error":{"code":"sandbox_snapshotting","message":"x"}}`}, providers.ConditionWait},
		"404":              {wiretest.Status(404), providers.ConditionRecreate},
		"502":              {wiretest.Status(502), providers.ConditionUnknown},
	} {
		f := verceltest.New(t, verceltest.Options{})
		c := open(t, f.Listen(), httpx.Net{})
		id := f.Add(verceltest.Seed{})
		tc.fault.Route = "POST /v2/sandboxes/sessions/{id}/cmd"
		f.Break(tc.fault)
		h, err := c.Probe(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, tc.want, h.Condition, name)
	}
}

func TestWhatCannotBeSetIsRefused(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	for name, spec := range map[string]sandbox.Spec{
		"disk":         {DiskBytes: 1 << 30},
		"odd memory":   {MemoryBytes: 512 << 20},
		"half a core":  {CPU: 0.5},
		"disagreement": {CPU: 1, MemoryBytes: 4 << 30},
		"tags":         {Labels: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}, Name: "x", TaskID: "t-1"},
	} {
		_, err := c.Create(t.Context(), spec)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
	}
	assert.Empty(t, f.Calls(""), "nothing is asked")
	s, err := c.Create(t.Context(), sandbox.Spec{MemoryBytes: 4 << 30})
	require.NoError(t, err)
	assert.InDelta(t, 2, *s.Limits.CPU, 0)
}

func TestATokenMayNameItsTeamAndProject(t *testing.T) {
	t.Parallel()
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"owner_id":"team_a","project_id":"prj_b"}`))
	for token, ok := range map[string]bool{"x." + payload + ".y": true, "plain": false, "x.!!.y": false} {
		_, err := vercel.Type().Open(t.Context(), providers.Profile{Name: "v", Settings: map[string]string{"token": token}}, providers.Deps{})
		assert.Equal(t, ok, err == nil, "%s: %v", token, err)
	}
	_, err := vercel.Type().Open(t.Context(), providers.Profile{Name: "v", Settings: map[string]string{}}, providers.Deps{})
	assert.Equal(t, fault.KindAuth, fault.KindOf(err))
}

func TestADeadSessionEndsItsCommands(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	said := make(chan struct{})
	go func() {
		<-said
		f.Abort(id)
	}()
	exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", "echo begun; sleep 600"}, Stdout: closing{said}})
	assert.Equal(t, fault.KindGone, fault.KindOf(err), "%v", err)
	assert.Equal(t, sandbox.ClassGone, exit.Class)
}

// closing closes its channel at the first write.
type closing struct{ c chan struct{} }

func (w closing) Write(b []byte) (int, error) {
	select {
	case <-w.c:
	default:
		close(w.c)
	}
	return len(b), nil
}
