package daytona_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/daytona"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/daytonatest"
	"sbx/internal/testkit/tiertest"
	"sbx/internal/testkit/wiretest"
)

func fresh(t *testing.T, o daytonatest.Options) (*daytonatest.Fake, *daytona.Client) {
	t.Helper()
	f := daytonatest.New(t, o)
	c := open(t, f.Listen(), httpx.Net{})
	t.Cleanup(c.Close)
	return f, c
}

// TestEventsBehindTheFirstPageOfTheAuditLog: the log is that of the organization.
func TestEventsBehindTheFirstPageOfTheAuditLog(t *testing.T) {
	t.Parallel()
	for entries, found := range map[int]bool{0: true, 199: true, 450: true, 5000: false} {
		f := daytonatest.New(t, daytonatest.Options{})
		id := f.Add(daytonatest.Seed{})
		c := open(t, "http://daytona/api", httpx.Net{Dial: f.Dial})
		require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
		f.AddAudit(entries)
		reader, ok := providers.As[providers.EventReader](c)
		require.True(t, ok)
		events, err := reader.Events(t.Context(), id)
		stopped := slices.ContainsFunc(events, func(e sandbox.Event) bool { return e.Event == "stop" })
		assert.Equal(t, found, stopped, "%d other entries", entries)
		assert.Equal(t, !found, err != nil, "%d other entries: %v", entries, err)
		if err != nil {
			require.ErrorContains(t, err, "there may be more than 2000")
			assert.Len(t, events, 1, "what is known is given")
		}
	}
}

// TestLookingIsNoActivity: reads send the header that keeps the auto-stop timer; commands of the
// operator are activity.
func TestLookingIsNoActivity(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{Old: true})
	id := f.Add(daytonatest.Seed{Age: 5 * time.Minute, Labels: map[string]string{"sbx/run": "main"}})
	active := func() time.Time {
		got, err := c.Get(t.Context(), id)
		require.NoError(t, err)
		return got.LastActivityAt
	}
	before := active()
	_, err := c.Usage(t.Context(), id)
	require.NoError(t, err)
	_, err = c.Probe(t.Context(), id)
	require.NoError(t, err)
	_, _ = c.Exit(t.Context(), id)                            // there is no such run; asking is what counts
	for range c.Logs(t.Context(), id, providers.LogQuery{}) { //nolint:errcheck // asking is what counts
		continue
	}
	assert.Equal(t, before, active(), "a look counts as activity")
	_, err = c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	require.NoError(t, err)
	assert.True(t, active().After(before), "a command is activity")
	assert.Zero(t, f.Changes())
}

// TestAnEntrypointIsFollowed: each stream grows independently, and each line comes once and
// complete.
func TestAnEntrypointIsFollowed(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	f.Says(id, "", "one bad thing\nhalf")
	steps := map[string]func(){
		"stderr one bad thing": func() { f.Says(id, "out two\n", "") },
		"stdout out two":       func() { f.Says(id, "out three\n", " a line\nbad four\n") },
		"stderr bad four":      func() { require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{})) },
	}
	var got []string
	for l, err := range c.Logs(t.Context(), id, providers.LogQuery{Follow: true, Tail: 1}) {
		require.NoError(t, err)
		line := l.Stream + " " + l.Text
		got = append(got, line)
		if step := steps[line]; step != nil {
			step()
		}
	}
	assert.Equal(t, []string{"stderr one bad thing", "stdout out two", "stdout out three", "stderr half a line", "stderr bad four"}, got)
}

// TestAnOpenLineOfAnEntrypointIsFollowed: each part is reported once, and the whole line when it ends, or
// when the sandbox ends.
func TestAnOpenLineOfAnEntrypointIsFollowed(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	f.Says(id, "1 of 2", "")
	steps := map[string]func(){
		"1 of 2":   func() { f.Says(id, "\r2 of 2", "") },
		"\r2 of 2": func() { f.Says(id, " done\n", "sure? ") },
		"sure? ":   func() { require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{})) },
	}
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), tiertest.Limit(t))
	defer cancel()
	for l, err := range c.Logs(ctx, id, providers.LogQuery{Follow: true, Open: true, Tail: 1}) {
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%s %d %s", l.Stream, l.OpenBytes, l.Text))
		if step := steps[l.Text]; step != nil && l.OpenBytes > 0 {
			step()
		}
	}
	assert.Equal(t, []string{
		"stdout 0 Error: connect ETIMEDOUT 10.0.0.1:443", "stdout 6 1 of 2", "stdout 13 \r2 of 2", "stdout 0 1 of 2\r2 of 2 done", "stderr 6 sure? ", "stderr 0 sure? ",
	}, got)
}

// TestACommandWhoseReaderLeaves: a command ends when its output cannot be written.
func TestACommandWhoseReaderLeaves(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"sh", "-c", "while echo y; do sleep 0.01; done"}, Stdout: full{}})
	require.ErrorContains(t, err, "its output cannot be written: no space left")
	require.Eventually(t, func() bool { return len(f.Processes(id)) == 0 }, tiertest.Limit(t), 5*time.Millisecond)
}

// full is a writer that fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestTerminateIsAStopAndDeleteDestroys(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	got, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateStopped, got.State)
	assert.Empty(t, f.Calls("DELETE /api/sandbox/{id}"))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	_, err = c.Get(t.Context(), id)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err))

	brief := f.Add(daytonatest.Seed{Ephemeral: true})
	require.NoError(t, c.Terminate(t.Context(), brief, providers.TerminateOptions{}))
	assert.Len(t, f.Calls("DELETE /api/sandbox/{id}"), 2, "a stop of an ephemeral one destroys it anyway")
}

// TestADeleteIsProvedTwice: a single 404 may be a failure of the API, and failed sandboxes are
// hidden behind one.
func TestADeleteIsProvedTwice(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		o     daytonatest.Options
		since time.Duration
		want  sandbox.Verdict
		why   string
	}{
		"one 404":    {daytonatest.Options{}, time.Second, sandbox.Unknown, "proves nothing"},
		"two, apart": {daytonatest.Options{}, 3 * time.Second, sandbox.True, ""},
		"hidden":     {daytonatest.Options{Hides: true}, 3 * time.Second, sandbox.False, "hidden as error"},
		"still here": {daytonatest.Options{EndFor: daytonatest.Forever}, 3 * time.Second, sandbox.False, "it is started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := fresh(t, tc.o)
			id := f.Add(daytonatest.Seed{})
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Delete: true, Since: now, Now: now.Add(tc.since)})
			require.NoError(t, err)
			assert.Equal(t, tc.want, proof.Ended)
			assert.Contains(t, proof.Reason, tc.why)
		})
	}
}

func TestWhatIsOnItsWayIsAccepted(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{EndFor: daytonatest.Forever})
	id := f.Add(daytonatest.Seed{})
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}))
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{Delete: true}), "a second delete meets 409")
	stuck := f.Add(daytonatest.Seed{State: "pulling_snapshot"})
	err := c.Terminate(t.Context(), stuck, providers.TerminateOptions{Delete: true})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "30m")
}

func TestADeadDaemonIsBroken(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	id := f.Add(daytonatest.Seed{})
	f.Kill(id)
	h, err := c.Probe(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, h.Verdict)
	assert.Equal(t, providers.ConditionBroken, h.Condition)
	exit, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	assert.Equal(t, sandbox.ClassInfra, exit.Class)
}

// TestAnotherGatewaysAnswerIsAboutNoDaemon: the proxy of a dead daemon answers without a body.
func TestAnotherGatewaysAnswerIsAboutNoDaemon(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"json": `{"statusCode":502,"message":"no"}`, "page": "<html>bad gateway</html>", "word": "bad gateway"} {
		bubble.Run(t, name, func(t *testing.T) {
			f := daytonatest.New(t, daytonatest.Options{})
			c := open(t, "http://daytona/api", httpx.Net{Dial: f.Dial})
			id := f.Add(daytonatest.Seed{})
			f.Break(wiretest.Fault{Route: "GET /toolbox/{id}/version", Status: http.StatusBadGateway, Body: body})
			h, err := c.Probe(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, sandbox.Unknown, h.Verdict)
			assert.Equal(t, providers.ConditionUnknown, h.Condition)
		})
	}
}

func TestHealthByState(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{EndFor: daytonatest.Forever, StartFor: time.Hour})
	for state, want := range map[string]providers.Condition{
		"started": providers.ConditionHealthy, "stopped": providers.ConditionResumable, "archived": providers.ConditionResumable, "paused": providers.ConditionResumable,
		"creating": providers.ConditionWait, "stopping": providers.ConditionWait, "error": providers.ConditionRecreate, "unknown": providers.ConditionUnknown, "pondering": providers.ConditionUnknown,
	} {
		h, err := c.Probe(t.Context(), f.Add(daytonatest.Seed{State: state}))
		require.NoError(t, err)
		assert.Equal(t, want, h.Condition, state)
	}
}

func TestDoctorFindsWhatCosts(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{Hides: true})
	f.Add(daytonatest.Seed{Endless: true})
	f.Add(daytonatest.Seed{State: "error", Reason: "internal error", Runner: "r-7"})
	f.Add(daytonatest.Seed{State: "error", Reason: "internal error", Runner: "r-7"})
	gone := f.Add(daytonatest.Seed{})
	require.NoError(t, c.Terminate(t.Context(), gone, providers.TerminateOptions{Delete: true}))
	said := map[string]string{}
	for _, found := range c.Check(t.Context()) {
		said[found.Check] = string(found.Verdict) + " " + found.Message
	}
	assert.Contains(t, said["api"], "true")
	assert.Contains(t, said["key"], "true")
	assert.Contains(t, said["endless"], "false 1 running")
	assert.Contains(t, said["errors"], "2 failed: runner r-7: internal error")
	assert.Contains(t, said["hidden"], "1 failed")
	quotas, err := c.Quota(t.Context())
	require.NoError(t, err)
	assert.Len(t, quotas, 3)
}

// TestNothingUsesNoQuota: an organization without a sandbox uses nothing, though its limits are not known; one that
// only hidden ones use is read.
func TestNothingUsesNoQuota(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{Hides: true})
	quotas, err := c.Quota(t.Context())
	require.NoError(t, err)
	share, fullest, known := providers.HighestUse(quotas)
	assert.True(t, known)
	assert.Zero(t, share)
	assert.Nil(t, fullest.Limit)
	gone := f.Add(daytonatest.Seed{State: "error", Reason: "internal error"})
	require.NoError(t, c.Terminate(t.Context(), gone, providers.TerminateOptions{Delete: true}))
	quotas, err = c.Quota(t.Context())
	require.NoError(t, err)
	assert.Len(t, quotas, 3)
}

func TestAnAddressWithoutItsPrefixIsExplained(t *testing.T) {
	t.Parallel()
	f := daytonatest.New(t, daytonatest.Options{})
	f.Handle(wiretest.Route{Method: "GET", Path: "/sandbox", Query: []string{"limit", "sort", "order"}, Serve: wiretest.Dashboard})
	c := open(t, strings.TrimSuffix(f.Listen(), "/api"), httpx.Net{})
	defer c.Close()
	for _, err := range c.List(t.Context(), providers.Query{}) {
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		assert.Equal(t, "the url must end in /api", fault.HintOf(err))
	}
}

func TestWhatCannotBeSetIsRefused(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	for name, spec := range map[string]sandbox.Spec{
		"memory of a snapshot": {MemoryBytes: 1 << 30}, "half a core": {Image: "debian", CPU: 0.5}, "odd memory": {Image: "debian", MemoryBytes: 512 << 20},
		"both": {Image: "debian", Snapshot: "x"}, "pids": {PIDs: 5},
	} {
		_, err := c.Create(t.Context(), spec)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
	}
	assert.Empty(t, f.Calls(""))
}
