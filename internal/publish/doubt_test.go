//go:build unix

package publish

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/tiertest"
)

// gate makes a hook of the remote report that it was reached and wait for its release; it
// holds only the first push.
type gate struct{ reached, release string }

func (w *world) gate(hook string) gate {
	w.t.Helper()
	dir := w.t.TempDir()
	g := gate{reached: filepath.Join(dir, "reached"), release: filepath.Join(dir, "release")}
	w.hook(hook, "mkdir "+g.reached+" 2>/dev/null || exit 0\nwhile [ ! -e "+g.release+" ]; do sleep 0.05; done")
	w.t.Cleanup(func() { _ = os.WriteFile(g.release, nil, 0o600) })
	return g
}

func (g gate) open(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(g.release, nil, 0o600))
}

func (g gate) await(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(g.reached); return err == nil }, tiertest.Limit(t), 5*time.Millisecond)
}

// The remote takes the push, hangs, and continues when the publisher has given up.
func TestHangingRemoteLeavesDoubtAndLookTells(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{})
	gate := w.gate("pre-receive")
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.url
	w.git.Limit = callLimitOfTests
	_, err := w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrInDoubt)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	m, err := w.look("t1", p.Target)
	require.NoError(t, err)
	assert.Equal(t, Absent, m.Verdict, "not yet")
	gate.open(t)
	h.busy.Wait()
	m, err = w.look("t1", p.Target)
	require.NoError(t, err)
	assert.Equal(t, Published, m.Verdict)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
	w.empty()
}

// A stop settles the doubt: the remote rejects the push that still hangs.
func TestStopSettlesDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{})
	gate := w.gate("pre-receive")
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.url
	w.git.Limit = callLimitOfTests
	_, err := w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrInDoubt)
	m, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
	require.NoError(t, err)
	require.Equal(t, Stopped, m.Verdict)
	gate.open(t)
	h.busy.Wait()
	assert.Empty(t, w.at("refs/heads/agent/t1"))
	m, err = w.look("t1", p.Target)
	require.NoError(t, err)
	assert.Equal(t, Stopped, m.Verdict)
}

// The refs have moved and only the answer is late: the remote shows the result.
func TestLateAnswerIsNoDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{})
	gate := w.gate("post-receive")
	p := w.work("t1", "agent/t1")
	p.Target.Remote = h.url
	w.git.Limit = callLimitOfTests
	got, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, Receipt{Commit: w.head(), Marker: w.at("refs/sbx/fence/t1")}, got, "it was this push, not an earlier one")
	gate.open(t)
	h.busy.Wait()
}

func TestLateAnswerOfAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{})
	w.gate("post-receive")
	w.git.Limit = callLimitOfTests
	there := Target{Remote: h.url, Branch: "b"}
	m, err := w.git.ForbidPublish(t.Context(), "t1", there, "ann", w.git.Now())
	require.NoError(t, err)
	assert.Equal(t, Stopped, m.Verdict)
}

func TestHangingStopIsNoVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.serve(&host{})
	w.gate("pre-receive")
	w.git.Limit = callLimitOfTests
	m, err := w.git.ForbidPublish(t.Context(), "t1", Target{Remote: h.url, Branch: "b"}, "ann", w.git.Now())
	require.ErrorIs(t, err, ErrInDoubt)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	assert.Equal(t, Mark{}, m)
}

// tattling is a git that writes its process id down before it pushes.
func (w *world) tattling() (program, pidFile string) {
	w.t.Helper()
	dir := w.t.TempDir()
	program, pidFile = filepath.Join(dir, "git"), filepath.Join(dir, "pid")
	script := "#!/bin/sh\ncase \" $* \" in *' push '*) echo $$ >" + pidFile + ".new; mv " + pidFile + ".new " + pidFile + ";; esac\nexec git \"$@\"\n"
	require.NoError(w.t, writeProgram(program, script))
	return program, pidFile
}

func readPid(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return pid
}

func TestGitKilledInTheMiddleOfThePush(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(w *world, p Push, g gate, h *host) Verdict{
		"the remote goes on": func(w *world, _ Push, g gate, h *host) Verdict {
			g.open(w.t)
			h.busy.Wait()
			return Published
		},
		"a stop comes first": func(w *world, p Push, g gate, h *host) Verdict {
			m, err := w.git.ForbidPublish(w.t.Context(), p.Task, p.Target, "ann", w.git.Now())
			require.NoError(w.t, err)
			g.open(w.t)
			h.busy.Wait()
			return m.Verdict
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.serve(&host{})
			gate := w.gate("pre-receive")
			p := w.work("t1", "agent/t1")
			p.Target.Remote = h.url
			killed := *w.git
			var pidFile string
			killed.Program, pidFile = w.tattling()
			ended := make(chan error, 1)
			go func() { ended <- second(killed.Publish(t.Context(), p)) }()
			gate.await(t)
			require.NoError(t, syscall.Kill(readPid(t, pidFile), syscall.SIGKILL))
			err := <-ended
			require.ErrorIs(t, err, ErrInDoubt)
			want := settle(w, p, gate, h)
			m, err := w.look("t1", p.Target)
			require.NoError(t, err)
			assert.Equal(t, want, m.Verdict)
			assert.Equal(t, want == Published, w.at("refs/heads/agent/t1") != "")
			w.empty()
		})
	}
}

func TestCanceledPublishLeavesDoubtAndNoProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := w.gate("pre-receive") // a local remote: the hook runs in git's own group
	p := w.work("t1", "agent/t1")
	var pidFile string
	w.git.Program, pidFile = w.tattling()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- second(w.git.Publish(ctx, p)) }()
	gate.await(t)
	cancel()
	err := <-ended
	require.ErrorIs(t, err, ErrInDoubt)
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return syscall.Kill(-readPid(t, pidFile), 0) == syscall.ESRCH }, tiertest.Limit(t), 5*time.Millisecond)
	w.git.Program = ""
	m, err := w.look("t1", p.Target)
	require.NoError(t, err)
	assert.Equal(t, Absent, m.Verdict)
	w.empty()
}

func TestCanceledBeforeAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.git.Publish(ctx, p)
	require.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, ErrInDoubt, "nothing was sent")
}

// A Ctrl-C during a probe, or a remote that answers too late, leaves no ref there.
func TestProbeThatIsCutLeavesNothing(t *testing.T) {
	t.Parallel()
	refs := func(w *world) string { return w.run(w.remote, "for-each-ref", "refs/sbx") }
	interrupt := func(t *testing.T, w *world, g gate) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.git.Probe(ctx, w.target("b")) }()
		g.await(t)
		require.NotEmpty(t, refs(w))
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		assert.Empty(t, refs(w))
		w.empty()
	}
	t.Run("after its ref was created", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		interrupt(t, w, w.gate("post-receive"))
	})
	t.Run("while it looks for its ref", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		dir := t.TempDir()
		w.git.Program = filepath.Join(dir, "git")
		script := "#!/bin/sh\nd=" + dir + "\ncase \" $* \" in\n*' push '*) >$d/pushed;;\n" +
			"*' ls-remote '*) if [ -e $d/pushed ]; then >$d/looks; exec sleep 60; fi;;\nesac\nexec git \"$@\"\n"
		require.NoError(t, writeProgram(w.git.Program, script))
		interrupt(t, w, gate{reached: filepath.Join(dir, "looks")})
	})
	t.Run("when the answer is late", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		h := w.serve(&host{})
		gate := w.gate("post-receive")
		w.git.Limit = callLimitOfTests
		err := w.git.Probe(t.Context(), Target{Remote: h.url, Branch: "b"})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
		assert.Empty(t, refs(w))
		gate.open(t)
		h.busy.Wait()
	})
}

func TestAContextThatOutlastsAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last, stop := withGrace(ctx, time.Minute)
		defer stop()
		cancel()
		began := time.Now()
		<-last.Done()
		assert.Equal(t, time.Minute, time.Since(began))
		_, unused := withGrace(ctx, time.Hour) // it leaves no goroutine behind
		unused()
	})
}
