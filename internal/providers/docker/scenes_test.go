package docker_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/docker"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// scene is a container on a real engine that another program has made, by Docker's own client.
type scene struct {
	t   *testing.T
	own *client.Client
	c   *docker.Client
	id  string
}

// newScene runs a shell script in a container of 32 MiB.
func newScene(t *testing.T, script string, edit func(*container.HostConfig)) scene {
	t.Helper()
	host := realEngine(t)
	own, err := client.New(client.WithHost(host))
	require.NoError(t, err)
	limits := &container.HostConfig{NetworkMode: "none", Resources: container.Resources{Memory: 32 << 20, MemorySwap: 32 << 20}}
	if edit != nil {
		edit(limits)
	}
	made, err := own.ContainerCreate(t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Cmd: []string{"sh", "-c", script}}, HostConfig: limits, Name: "scene-" + strings.ToLower(rand.Text()),
	})
	require.NoError(t, err)
	s := scene{t, own, open(t, map[string]string{"host": host}, httpx.Net{}), made.ID}
	t.Cleanup(func() {
		_, _ = own.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, client.ContainerRemoveOptions{Force: true}) // most are gone
		s.c.Close()
	})
	_, err = own.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{})
	require.NoError(t, err)
	return s
}

// await reads the container until it has the state.
func (s scene) await(state sandbox.State) sandbox.Sandbox {
	s.t.Helper()
	var now sandbox.Sandbox
	require.Eventually(s.t, func() bool {
		var err error
		now, err = s.c.Get(s.t.Context(), s.id)
		return err == nil && now.State == state
	}, tiertest.Limit(s.t), 50*time.Millisecond)
	return now
}

// hostPID is the main program, as this machine numbers it; 0 = it does not run.
func (s scene) hostPID() int {
	s.t.Helper()
	now, err := s.own.ContainerInspect(s.t.Context(), s.id, client.ContainerInspectOptions{})
	require.NoError(s.t, err)
	return now.Container.State.Pid
}

// end ends the container and waits for the proof.
func (s scene) end() providers.Proof {
	s.t.Helper()
	require.NoError(s.t, s.c.Terminate(s.t.Context(), s.id, providers.TerminateOptions{Grace: time.Second, By: "test"}))
	seen := time.Now()
	var proof providers.Proof
	require.Eventually(s.t, func() bool {
		var err error
		proof, err = s.c.VerifyEnd(s.t.Context(), s.id, providers.EndQuery{Since: seen, Now: time.Now()})
		return err == nil && proof.Ended == sandbox.True
	}, tiertest.Limit(s.t), 50*time.Millisecond)
	return proof
}

// swallow takes memory until there is none left.
const swallow = `x=0123456789abcdef; while :; do x=$x$x; done`

func TestEndsOnAnEngine(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]struct {
		script     string
		act        func(s scene)
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
		code       int
	}{
		"memory of the main program": {swallow, nil, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable, 137},
		"memory of a child":          {"sh -c '" + swallow + "'; exit 0", nil, sandbox.ClassOK, sandbox.CauseOOMChild, sandbox.Probable, 0},
		"a kill from outside": {"exec sleep 600", func(s scene) {
			_, err := s.own.ContainerKill(s.t.Context(), s.id, client.ContainerKillOptions{Signal: "KILL"})
			require.NoError(s.t, err)
		}, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, 137},
		"an exit": {"exit 3", nil, sandbox.ClassAgentError, sandbox.CauseUnknown, sandbox.ConfidenceUnknown, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, scene.script, nil)
			if scene.act != nil {
				scene.act(s)
			}
			exit := s.await(sandbox.StateStopped).Exit
			require.NotNil(t, exit)
			require.NotNil(t, exit.Code)
			assert.Equal(t, scene.code, *exit.Code)
			assert.Equal(t, scene.class, exit.Class)
			assert.Equal(t, scene.cause, exit.Cause)
			assert.Equal(t, scene.confidence, exit.Confidence)
			assert.NotEmpty(t, exit.Evidence)
		})
	}
}

// TestARestartPolicyIsOvercome: a killed main program comes back, and an end is for good.
func TestARestartPolicyIsOvercome(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exec sleep 600", func(h *container.HostConfig) { h.RestartPolicy = container.RestartPolicy{Name: "always"} })
	first := s.hostPID()
	main, err := os.FindProcess(first)
	require.NoError(t, err)
	require.NoError(t, main.Kill())
	require.Eventually(t, func() bool { pid := s.hostPID(); return pid != 0 && pid != first }, tiertest.Limit(t), 50*time.Millisecond, "the engine does not start it again")
	health, err := s.c.Probe(t.Context(), s.id)
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(health.Evidence), "by policy always")
	s.end()
	assert.Equal(t, sandbox.StateStopped, s.await(sandbox.StateStopped).State)
}

// TestTermIsIgnored: the grace passes, and KILL ends it.
func TestTermIsIgnored(t *testing.T) {
	t.Parallel()
	s := newScene(t, "trap '' TERM; while :; do sleep 1; done", nil)
	s.end()
	exit := s.await(sandbox.StateStopped).Exit
	require.NotNil(t, exit)
	assert.Equal(t, sandbox.ClassKilledUnknown, exit.Class, "the record of the engine does not say who asked for it")
}

// TestAPausedContainer takes no commands, is no silence, and can be ended.
func TestAPausedContainer(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exec sleep 600", nil)
	_, err := s.own.ContainerPause(t.Context(), s.id, client.ContainerPauseOptions{})
	require.NoError(t, err)
	s.await(sandbox.StatePaused)
	_, err = s.c.Exec(t.Context(), s.id, providers.Command{Args: []string{"true"}})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	s.end()
}

// TestRemovedAtItsEnd: what --rm removes is proved by the engine's memory of events.
func TestRemovedAtItsEnd(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exec sleep 600", func(h *container.HostConfig) { h.AutoRemove = true })
	proof := s.end()
	assert.True(t, proof.Independent)
	var said []string
	for _, e := range proof.Evidence {
		said = append(said, e.What+" "+e.Value)
	}
	assert.Contains(t, strings.Join(said, "\n"), "event die")
}

// TestANameIsUsedAgain: the id of a container that was removed never means the next one of its name.
func TestANameIsUsedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, "exec sleep 600", nil)
	before, err := s.c.Get(t.Context(), s.id)
	require.NoError(t, err)
	_, err = s.own.ContainerRemove(t.Context(), s.id, client.ContainerRemoveOptions{Force: true})
	require.NoError(t, err)
	next, err := s.own.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{Image: image, Cmd: []string{"sleep", "600"}}, HostConfig: &container.HostConfig{NetworkMode: "none"}, Name: before.Name})
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = s.own.ContainerRemove(context.WithoutCancel(t.Context()), next.ID, client.ContainerRemoveOptions{Force: true}) // as above
	})
	_, err = s.own.ContainerStart(t.Context(), next.ID, client.ContainerStartOptions{})
	require.NoError(t, err)
	err = s.c.Terminate(t.Context(), before.ID, providers.TerminateOptions{Delete: true, By: "test"})
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
	now, err := s.c.Get(t.Context(), next.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, now.State, "another container was hit")
}

// TestTheLogOfAnEngine has both streams in their order, with times, and long lines whole.
func TestTheLogOfAnEngine(t *testing.T) {
	t.Parallel()
	s := newScene(t, `echo one; sleep 0.1; echo two >&2; sleep 0.1; head -c 40000 /dev/zero | tr '\0' x; echo; sleep 0.1; echo last`, nil)
	s.await(sandbox.StateStopped)
	var lines []sandbox.LogLine
	for l, err := range s.c.Logs(t.Context(), s.id, providers.LogQuery{Follow: true}) {
		require.NoError(t, err)
		lines = append(lines, l)
	}
	require.Len(t, lines, 4)
	assert.Equal(t, []string{"one", "two", strings.Repeat("x", 40000), "last"}, []string{lines[0].Text, lines[1].Text, lines[2].Text, lines[3].Text})
	assert.Equal(t, "stderr", lines[1].Stream)
	for i, l := range lines {
		assert.False(t, l.At.IsZero())
		assert.True(t, i == 0 || !l.At.Before(lines[i-1].At))
	}
}

// TestLimitsOfAnEngine: a limit that must hold is one that the engine has set, or the create is refused: Podman without root
// drops limits without a word where its user has no control groups.
func TestLimitsOfAnEngine(t *testing.T) {
	t.Parallel()
	host := realEngine(t)
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	drops := strings.Contains(host, "/rootless/") && err != nil // by the stage `podman`, on a machine whose control groups only root has
	c := open(t, map[string]string{"host": host, "label": "sbx-view=" + rand.Text()}, httpx.Net{})
	t.Cleanup(c.Close)
	made, err := c.Create(t.Context(), sandbox.Spec{MemoryBytes: 64 << 20, RequireHardLimit: true})
	if drops {
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
		for left, err := range c.List(t.Context(), providers.Query{All: true}) {
			require.NoError(t, err)
			assert.Fail(t, "it was left", "%v", left)
		}
		made, err = c.Create(t.Context(), sandbox.Spec{MemoryBytes: 64 << 20})
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Terminate(context.WithoutCancel(t.Context()), made.ID, providers.TerminateOptions{Delete: true, By: "test"})
	})
	used, err := c.Usage(t.Context(), made.ID)
	require.NoError(t, err)
	if drops {
		assert.Nil(t, used.MemoryBytes, "it is the memory of this machine")
		return
	}
	assert.EqualValues(t, 64<<20, *made.Limits.MemoryBytes)
	if used.MemoryBytes != nil {
		assert.Less(t, *used.MemoryBytes, int64(64<<20))
	}
}

// TestAPauseOnAnEngine: the silence of a program counts from the end of a pause.
func TestAPauseOnAnEngine(t *testing.T) {
	t.Parallel()
	host := realEngine(t)
	own, err := client.New(client.WithHost(host))
	require.NoError(t, err)
	c := open(t, map[string]string{"host": host, "label": "sbx-view=" + rand.Text()}, httpx.Net{})
	t.Cleanup(c.Close)
	made, err := c.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo one; exec sleep 600"}})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Terminate(context.WithoutCancel(t.Context()), made.ID, providers.TerminateOptions{Delete: true, By: "test"})
	})
	const pause = 15 * time.Second
	_, err = own.ContainerPause(t.Context(), made.ID, client.ContainerPauseOptions{})
	require.NoError(t, err)
	began := time.Now()
	require.Eventually(t, func() bool { return time.Since(began) > pause }, tiertest.Limit(t), time.Second)
	_, err = own.ContainerUnpause(t.Context(), made.ID, client.ContainerUnpauseOptions{})
	require.NoError(t, err)
	goesOn := time.Now()
	silent := silenceOf(t, c, made.ID)
	assert.Less(t, silent, time.Since(goesOn)+2*time.Second)
}
