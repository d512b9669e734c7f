package docker_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/docker"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/wiretest"
)

// dialed is a client of a fake in-process.
func dialed(t wiretest.T, f *dockertest.Fake) *docker.Client {
	return open(t, dockertest.Settings(base), httpx.Net{Dial: f.Dial})
}

// listed reads a listing to its end.
func listed(ctx context.Context, p providers.Provider) (all []sandbox.Sandbox, failed error) {
	for row, err := range p.List(ctx, providers.Query{}) {
		if err != nil {
			failed = err
			continue
		}
		all = append(all, row)
	}
	return all, failed
}

// An engine that cannot be reached is named with its address, whether or not it has answered before.
func TestEnginesThatAreAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dial error
		kind fault.Kind
		says string
		hint string
	}{
		"no socket":          {syscall.ENOENT, fault.KindUnavailable, "no engine listens at tcp://docker:2375", "start the engine"},
		"nobody listens":     {syscall.ECONNREFUSED, fault.KindUnavailable, "no engine listens at tcp://docker:2375", "start the engine"},
		"no right to use it": {syscall.EACCES, fault.KindAuth, "refuses this user", "the group docker"},
	} {
		for _, known := range []bool{false, true} {
			bubble.Run(t, name+map[bool]string{true: ", since a moment"}[known], func(t *testing.T) {
				f := dockertest.New(t, dockertest.Options{Virtual: true})
				id := f.Add(dockertest.Seed{})
				c := dialed(t, f)
				defer c.Close()
				if known {
					_, err := c.Get(t.Context(), id)
					require.NoError(t, err)
				}
				f.Unplug(&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", tc.dial)})
				c.Close() // its idle connections
				rows, err := listed(t.Context(), c)
				assert.Empty(t, rows)
				assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
				require.ErrorContains(t, err, tc.says)
				assert.Contains(t, fault.HintOf(err), tc.hint)
				wiretest.CheckPlace(t, err)
				_, err = c.Create(t.Context(), sandbox.Spec{})
				assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
				require.ErrorIs(t, err, providers.ErrNothingMade)
				f.Unplug(nil)
				rows, err = listed(t.Context(), c)
				require.NoError(t, err)
				assert.Len(t, rows, 1)
			})
		}
	}
}

// A socket of an engine that has stopped is still a file.
func TestSocketWithoutAnEngine(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "engine") //nolint:usetesting // a path of a socket has at most 108 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	for _, path := range []string{stale, filepath.Join(dir, "none")} {
		c := open(t, map[string]string{"host": "unix://" + path}, httpx.Net{})
		_, err := listed(t.Context(), c)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "no engine listens at unix://"+path)
		assert.Contains(t, fault.HintOf(err), "the setting host names this one")
		c.Close()
	}
}

// Words of Docker's engine.
const (
	tooNew = "client version 1.47 is too new. Maximum supported API version is 1.41"
	tooOld = "client version 1.47 is too old. Minimum supported API version is 1.60, please upgrade your client to a newer version"
)

// An engine that is replaced while sbx runs is asked again for its version; one that takes none of those of sbx is
// unsupported.
func TestVersionsOfTheEngine(t *testing.T) {
	t.Parallel()
	route := "GET /v1.47/containers/json"
	for name, tc := range map[string]struct {
		api   string
		fault wiretest.Fault
		kind  fault.Kind
		says  string
		pings int
	}{
		"too old":                    {"1.39", wiretest.Fault{}, fault.KindUnsupported, "sbx needs 1.40", 1},
		"no engine":                  {"2.0", wiretest.Fault{}, fault.KindUnavailable, "something else answers there", 1},
		"replaced by an older one":   {"1.47", refusal(route, tooNew, 1), fault.KindNone, "", 2},
		"replaced by a newer one":    {"1.47", refusal(route, tooOld, 1), fault.KindNone, "", 2},
		"too new":                    {"1.47", refusal(route, tooOld, 0), fault.KindUnsupported, "Minimum supported API version is 1.60", 2},
		"another refusal":            {"1.47", refusal(route, "invalid filter", 0), fault.KindUnknown, "invalid filter", 1},
		"starts, and is not ready":   {"1.47", wiretest.Fault{Route: route, Status: http.StatusServiceUnavailable, Body: `{"message":"the engine is starting"}`}, fault.KindUnavailable, "the engine is starting", 1},
		"restarts in the meantime":   {"1.47", wiretest.Fault{Route: route, Trouble: wiretest.TroubleReset, Times: 1}, fault.KindNone, "", 1},
		"stops while it is asked":    {"1.47", wiretest.Fault{Route: route, Trouble: wiretest.TroubleTruncate}, fault.KindUnavailable, "cut short", 1},
		"hangs, as with a full disk": {"1.47", wiretest.Fault{Route: route, Trouble: wiretest.TroubleHang}, fault.KindUnavailable, "no answer within", 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := dockertest.New(t, dockertest.Options{Virtual: true, API: tc.api})
			f.Add(dockertest.Seed{})
			c := dialed(t, f)
			defer c.Close()
			if tc.fault.Route != "" {
				f.Break(tc.fault)
			}
			began := time.Now()
			rows, err := listed(t.Context(), c)
			assert.LessOrEqual(t, time.Since(began), time.Minute)
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			assert.Len(t, f.Calls("GET /_ping"), tc.pings)
			if tc.kind == fault.KindNone {
				assert.Len(t, rows, 1)
				return
			}
			assert.Empty(t, rows)
			require.ErrorContains(t, err, tc.says)
			wiretest.CheckPlace(t, err)
			if tc.kind == fault.KindUnsupported {
				assert.Contains(t, fault.HintOf(err), "update")
			}
		})
	}
}

func refusal(route, says string, times int) wiretest.Fault {
	return wiretest.Fault{Route: route, Status: http.StatusBadRequest, Body: `{"message":"` + says + `"}`, Times: times}
}

// A container that comes back after its end was requested has not ended.
func TestContainerThatComesBack(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	id := f.Add(dockertest.Seed{Restart: "always"})
	c := dialed(t, f)
	defer c.Close()
	require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Since: time.Now(), Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.True, proof.Ended)
	for _, word := range []string{"running", "restarting"} {
		f.SetState(id, word)
		got, err := c.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateRunning, got.State)
		proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Since: time.Now(), Now: time.Now()})
		require.NoError(t, err)
		assert.Equal(t, sandbox.False, proof.Ended)
		assert.Equal(t, "it is "+word, proof.Reason)
	}
}

// What `--rm` has removed is gone before it is read. Only the memory of the engine adds that its program died.
func TestRemovedBeforeItWasRead(t *testing.T) {
	t.Parallel()
	for name, forgets := range map[string]bool{"remembered": false, "forgotten": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, dockertest.Options{Virtual: true, Forgets: forgets})
			id := f.Add(dockertest.Seed{Remove: true})
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
			_, err := c.Get(t.Context(), id)
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Since: time.Now(), Now: time.Now()})
			require.NoError(t, err)
			assert.Equal(t, sandbox.True, proof.Ended)
			assert.Equal(t, !forgets, proof.Independent)
			err = c.Terminate(t.Context(), id, providers.TerminateOptions{})
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
		})
	}
}

// The events of an engine have the times of its clock.
func TestClockOfTheEngine(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := dockertest.New(t, dockertest.Options{Virtual: true, Now: func() time.Time { return time.Now().Add(ahead) }})
			f.Break(wiretest.Fault{HeaderFunc: func() map[string]string {
				return map[string]string{"Date": time.Now().Add(ahead).UTC().Format(http.TimeFormat)}
			}})
			id := f.Add(dockertest.Seed{Remove: true})
			c := dialed(t, f)
			defer c.Close()
			require.NoError(t, c.Terminate(t.Context(), id, providers.TerminateOptions{}))
			unconfirmed := &sandbox.EndRequest{}
			proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Since: time.Now(), Now: time.Now(), Request: unconfirmed})
			require.NoError(t, err)
			assert.Equal(t, sandbox.True, proof.Ended)
			assert.True(t, proof.Independent, "the event is found")
		})
	}
}

// A name belongs to another container by now: the first id never reaches it.
func TestNameThatIsUsedAgain(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	first := f.Add(dockertest.Seed{Name: "web"})
	c := dialed(t, f)
	defer c.Close()
	require.NoError(t, c.Terminate(t.Context(), first, providers.TerminateOptions{Delete: true}))
	second := f.Add(dockertest.Seed{Name: "web"})
	got, err := c.Get(t.Context(), "web")
	require.NoError(t, err)
	assert.Equal(t, second, got.ID)
	err = c.Terminate(t.Context(), first, providers.TerminateOptions{Delete: true})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	_, err = c.Exec(t.Context(), first, providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	assert.True(t, f.Runs(second))
}

// The beginning of an id, as `docker ps` shows it, is no id: the caller finds the one that begins so.
func TestBeginningOfAnID(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	id := f.Add(dockertest.Seed{})
	c := dialed(t, f)
	defer c.Close()
	_, err := c.Get(t.Context(), id[:12])
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	err = c.Terminate(t.Context(), id[:12], providers.TerminateOptions{})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	assert.True(t, f.Runs(id))
}

// A record that says that a container has stopped is held against the list.
func TestARecordOfAStopIsHeldAgainstTheList(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	id := f.Add(dockertest.Seed{})
	c := dialed(t, f)
	defer c.Close()
	f.Break(wiretest.Fault{Contains: "/" + id + "/json", Edit: func(body []byte) []byte {
		return bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(`"Running":true`), []byte(`"Running":false`)), []byte(`"Status":"running"`), []byte(`"Status":"exited"`))
	}})
	got, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, sandbox.StateStopped, got.State)
	proof, err := c.VerifyEnd(t.Context(), id, providers.EndQuery{Since: time.Now(), Now: time.Now()})
	require.NoError(t, err)
	assert.Equal(t, sandbox.False, proof.Ended)
	assert.Contains(t, proof.Reason, "the list shows it as running")
}

// A paused container takes no command, and can go on.
func TestPausedContainer(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	id := f.Add(dockertest.Seed{State: "paused"})
	c := dialed(t, f)
	defer c.Close()
	_, err := c.Exec(t.Context(), id, providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "is paused")
	health, err := c.Probe(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, providers.ConditionResumable, health.Condition)
}

// TestFiguresOfAnotherAreNone: the statistics name their container; those of older engines do not.
func TestFiguresOfAnotherAreNone(t *testing.T) {
	t.Parallel()
	const stats = "GET /v1.47/containers/{id}/stats"
	bubble.Run(t, "another", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		id, other := f.Add(dockertest.Seed{}), f.Add(dockertest.Seed{})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: stats, Contains: id, Other: other})
		_, err := c.Usage(t.Context(), id)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	})
	bubble.Run(t, "without a name", func(t *testing.T) {
		f := dockertest.New(t, dockertest.Options{Virtual: true})
		id := f.Add(dockertest.Seed{})
		c := dialed(t, f)
		defer c.Close()
		f.Break(wiretest.Fault{Route: stats, Edit: func(body []byte) []byte { return bytes.Replace(body, []byte(`"id"`), []byte(`"former"`), 1) }})
		u, err := c.Usage(t.Context(), id)
		require.NoError(t, err)
		assert.NotNil(t, u.CPUSeconds)
	})
}
