package vercel_test

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
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
)

func TestKills(t *testing.T) {
	t.Parallel()
	wiretest.RunKills(t, func(t *testing.T) wiretest.Victim {
		t.Helper()
		f := verceltest.New(t, verceltest.Options{})
		id := f.Add(verceltest.Seed{})
		return wiretest.Victim{
			Server: f.Server, P: open(t, f.Listen(), httpx.Net{}), ID: id, Stream: "POST /v2/sandboxes/sessions/{id}/cmd",
			Processes: func() []*wiretest.Running { return f.Processes(id) },
		}
	})
}

// TestAResumedSandboxIsNotTheJudgedOne: a name may have another session than when it was listed.
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
	h, err := c.Probe(t.Context(), judged)
	require.NoError(t, err)
	assert.Equal(t, providers.ConditionUnknown, h.Condition, "what runs now is to be judged, not this one")
}

// TestAProvedStopSaysThatTheNameRunsAgain: the session has ended, and what runs under its name costs on.
func TestAProvedStopSaysThatTheNameRunsAgain(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{Name: "worker", Persistent: true})
	_, err := c.Get(t.Context(), "worker")
	require.NoError(t, err)
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	require.Equal(t, sandbox.True, proof.Ended)
	assert.Equal(t, "its name worker is stopped", proof.Evidence[1].Value)
	now := f.Resume("worker")
	proof, err = c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	require.Equal(t, sandbox.True, proof.Ended)
	require.Len(t, proof.Evidence, 2)
	assert.Equal(t, "its name worker runs again as "+now, proof.Evidence[1].Value)
	f.Break(wiretest.Fault{Route: "GET /v2/sandboxes/{name}", Status: 500, Times: 10})
	proof, err = c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.Error(t, err)
	assert.NotEqual(t, sandbox.True, proof.Ended, "one record alone proves nothing")
}

// TestAgesInAList: a row has no start of its session; its age is at most the session's.
func TestAgesInAList(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	f.Add(verceltest.Seed{Name: "runs", Age: 3 * time.Minute, Created: 30 * 24 * time.Hour})
	f.Add(verceltest.Seed{Name: "stopped", Age: time.Hour, Created: 30 * 24 * time.Hour, Persistent: true, Status: "stopped"})
	f.Add(verceltest.Seed{Name: "nameless", Sessionless: true})
	ages, ids := map[string]time.Duration{}, map[string]string{}
	for s, err := range c.List(t.Context(), providers.Query{}) {
		require.NoError(t, err)
		ages[s.Name], _ = s.Age(time.Now())
		ids[s.Name] = s.ID
	}
	assert.InDelta(t, 3*time.Minute, ages["runs"], float64(time.Minute))
	assert.Less(t, ages["stopped"], time.Minute)
	assert.Equal(t, "nameless", ids["nameless"], "a row without a session is shown by its name")
	got, err := c.Get(t.Context(), "nameless")
	require.NoError(t, err)
	assert.Equal(t, "nameless", got.Name)
}

// TestADeletedNameIsProved: a delete is proved when the name is gone and its session has ended.
func TestADeletedNameIsProved(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{Name: "worker"})
	deleted := providers.EndQuery{Delete: true}
	proof, err := c.VerifyEnd(t.Context(), id, deleted)
	require.NoError(t, err)
	assert.Equal(t, sandbox.Unknown, proof.Ended, "nobody asked for it")
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	proof, err = c.VerifyEnd(t.Context(), id, deleted)
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	assert.NotEmpty(t, proof.Evidence)
	f.Add(verceltest.Seed{Name: "worker"})
	proof, err = c.VerifyEnd(t.Context(), id, deleted)
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended)
	assert.Contains(t, proof.Reason, "worker")
	f.Break(wiretest.Fault{Route: "GET /v2/sandboxes/{name}", Status: 500, Times: 10})
	_, err = c.VerifyEnd(t.Context(), id, deleted)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "what cannot be asked is not proved")
}

// TestAFalse404OfASessionIsNoEnd: the sandbox still has the session as its current one.
func TestAFalse404OfASessionIsNoEnd(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{Name: "worker"})
	_, err := c.Get(t.Context(), "worker")
	require.NoError(t, err)
	f.Break(wiretest.Fault{Route: "GET /v2/sandboxes/sessions/{id}", Status: 404, Body: `{"error":{"code":"not_found","message":"Sandbox not found."}}`, Times: 3})
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended)
	assert.Contains(t, proof.Reason, "still running")
}

// TestWhatIsMadeSaysWhose: a create sets the owner, the labels, and the runtime of the profile.
func TestWhatIsMadeSaysWhose(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	settings := verceltest.Settings(f.Listen())
	settings["runtime"] = "python3.13"
	p, err := vercel.Type().Open(t.Context(), providers.Profile{Name: "prod", Settings: settings}, providers.Deps{})
	require.NoError(t, err)
	c, ok := p.(*vercel.Client)
	require.True(t, ok)
	defer c.Close()
	made, err := c.Create(t.Context(), sandbox.Spec{Name: "one", TaskID: "t-7", Labels: map[string]string{"tier": "gold", sandbox.LabelOwner: "ada"}})
	require.NoError(t, err)
	got, err := c.Get(t.Context(), made.ID)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"sbx/owner": "ada", "sbx/name": "one", "sbx/task": "t-7", "tier": "gold"}, got.Labels)
	assert.Equal(t, []string{"one", "t-7", "python3.13"}, []string{got.Name, got.TaskID, got.Template})
	var found []string
	for s, err := range c.List(t.Context(), providers.Query{Labels: map[string]string{"sbx/task": "t-7"}}) {
		require.NoError(t, err)
		found = append(found, s.ID)
	}
	assert.Equal(t, []string{made.ID}, found)
	made, err = c.Create(t.Context(), sandbox.Spec{Image: "ubuntu:24.04"})
	require.NoError(t, err)
	assert.Equal(t, "ubuntu:24.04", made.Template)
}

// TestStdinAndLimits: a command gets its stdin, and the service's own limit is a timeout and no
// crash.
func TestStdinAndLimits(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	var out strings.Builder
	exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"wc", "-c"}, Stdin: strings.NewReader(strings.Repeat("x", 100_000)), Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, 0, *exit.Code)
	assert.Equal(t, "100000", strings.TrimSpace(out.String()))
	_, err = c.Exec(t.Context(), id, providers.Command{Args: []string{"cat"}, Stdin: iotest.ErrReader(errors.New("torn"))})
	require.ErrorContains(t, err, "stdin: torn")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Exec(ctx, id, providers.Command{Args: []string{"sleep", "600"}})
	assert.Equal(t, fault.KindTimeout, fault.KindOf(err))
	require.Eventually(t, func() bool { return len(f.Processes(id)) == 0 }, tiertest.Limit(t), 5*time.Millisecond)
}

// TestUsageAfterTheEnd: the API has the CPU time of an ended session only.
func TestUsageAfterTheEnd(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	u, err := c.Usage(t.Context(), f.Add(verceltest.Seed{Status: "stopped"}))
	require.NoError(t, err)
	assert.Contains(t, u.Source, "API")
	assert.Nil(t, u.CPUSeconds, "the fake does not tell")
	u, err = c.Usage(t.Context(), f.Add(verceltest.Seed{}))
	require.NoError(t, err)
	assert.NotContains(t, u.Source, "API")
}

// TestAStopKeepsWhatDeleteDestroys: only Delete destroys a persistent sandbox's snapshot.
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

func TestHealthByStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed verceltest.Seed
		want providers.Condition
	}{
		"running":                  {verceltest.Seed{}, providers.ConditionHealthy},
		"pending":                  {verceltest.Seed{Status: "pending"}, providers.ConditionWait},
		"stopping":                 {verceltest.Seed{Status: "stopping"}, providers.ConditionWait},
		"snapshotting":             {verceltest.Seed{Status: "snapshotting"}, providers.ConditionWait},
		"stopped":                  {verceltest.Seed{Status: "stopped"}, providers.ConditionRecreate},
		"stopped, keeps":           {verceltest.Seed{Status: "stopped", Persistent: true, Snapshot: "created"}, providers.ConditionResumable},
		"stopped, does not tell":   {verceltest.Seed{Status: "stopped", Persistent: true}, providers.ConditionResumable},
		"stopped, kept no longer":  {verceltest.Seed{Status: "stopped", Persistent: true, Snapshot: "deleted"}, providers.ConditionRecreate},
		"stopped, could not keep":  {verceltest.Seed{Status: "stopped", Persistent: true, Snapshot: "failed"}, providers.ConditionRecreate},
		"failed":                   {verceltest.Seed{Status: "failed"}, providers.ConditionRecreate},
		"a status of another time": {verceltest.Seed{Status: "pondering"}, providers.ConditionUnknown},
	} {
		f := verceltest.New(t, verceltest.Options{StopFor: verceltest.Forever})
		c := open(t, f.Listen(), httpx.Net{})
		id := f.Add(tc.seed)
		var h providers.Health
		var err error
		f.Reading(func() { h, err = c.Probe(t.Context(), id) })
		require.NoError(t, err)
		assert.Equal(t, tc.want, h.Condition, name)
		assert.NotEmpty(t, h.Evidence)
	}
}

// TestHealthByCode: the error code of a command is more exact than a status.
func TestHealthByCode(t *testing.T) {
	t.Parallel()
	code := func(status int, code string) wiretest.Fault {
		return wiretest.Fault{Status: status, Body: `{"error":{"code":"` + code + `","message":"x"}}`}
	}
	for name, tc := range map[string]struct {
		fault      wiretest.Fault
		persistent bool
		want       providers.Condition
	}{
		"410 stopped":           {code(410, "sandbox_stopped"), true, providers.ConditionResumable},
		"410 stopped, for good": {code(410, "sandbox_stopped"), false, providers.ConditionRecreate},
		"410 snapshot":          {code(410, "snapshot_not_found"), true, providers.ConditionRecreate},
		"422 stopping":          {code(422, "sandbox_stopping"), true, providers.ConditionWait},
		"422 snapshotting":      {code(422, "sandbox_snapshotting"), true, providers.ConditionWait},
		"404":                   {wiretest.Status(404), true, providers.ConditionRecreate},
		"502":                   {wiretest.Status(502), true, providers.ConditionUnknown},
	} {
		f := verceltest.New(t, verceltest.Options{})
		c := open(t, f.Listen(), httpx.Net{})
		id := f.Add(verceltest.Seed{Persistent: tc.persistent})
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
	assert.Equal(t, sandbox.ClassInfra, exit.Class)
	assert.Equal(t, "aborted", exit.Raw, "the session tells more than the stream")
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

// TestWithoutNamesTheListTells: the sandbox of a session without a name is found by the row of the
// list, for a delete and for the log of a program of sbx.
func TestWithoutNamesTheListTells(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{Nameless: true})
	id := f.Add(verceltest.Seed{Name: "worker"})
	other := f.Add(verceltest.Seed{Name: "other"})
	c := open(t, f.Listen(), httpx.Net{}) // and so it has read nothing yet
	got, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "worker", got.Name)
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	_, err = c.Get(t.Context(), other)
	require.NoError(t, err)
}

// TestAMissingWorkdirIsNoMissingProgram: the API answers both alike.
func TestAMissingWorkdirIsNoMissingProgram(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	c := open(t, f.Listen(), httpx.Net{})
	id := f.Add(verceltest.Seed{})
	_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}, Workdir: "/nowhere/at all"})
	assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, `no folder "/nowhere/at all"`)
	_, err = c.Exec(t.Context(), id, providers.Command{Args: []string{"nosuchprogram"}, Workdir: t.TempDir()})
	assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(err), "%v", err)
}

// TestAlteredOutputIsTold: bytes that are not UTF-8 are lost, with one notice.
func TestAlteredOutputIsTold(t *testing.T) {
	t.Parallel()
	f := verceltest.New(t, verceltest.Options{})
	id := f.Add(verceltest.Seed{})
	var told []string
	p, err := vercel.Type().Open(t.Context(), providers.Profile{Name: "prod", Type: vercel.TypeName, Settings: verceltest.Settings(f.Listen())},
		providers.Deps{Now: time.Now, Notice: func(text string) { told = append(told, text) }})
	require.NoError(t, err)
	commander, ok := providers.As[providers.Commander](p)
	require.True(t, ok)
	run := func(script string) {
		_, err := commander.Exec(t.Context(), id, shell(script))
		require.NoError(t, err)
	}
	run("echo ordinary, and b\u00fccher")
	require.Empty(t, told)
	run(`printf '\377\376'`)
	run(`printf '\377\376'`)
	require.Len(t, told, 1)
	require.Contains(t, told[0], "not UTF-8")
}
