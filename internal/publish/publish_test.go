package publish

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestPublishMovesBranchAndFenceTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	got, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, Receipt{Commit: w.head(), Marker: w.at("refs/sbx/fence/t1")}, got)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
	assert.Equal(t, w.base, w.at("refs/heads/main"))
	m, err := w.look("t1", p.Target)
	require.NoError(t, err)
	assert.Equal(t, Mark{Verdict: Published, Task: "t1", Fence: 3, Commit: w.head(), Branch: "agent/t1", At: w.git.Now().UTC()}, m)
	assert.Empty(t, w.run(w.remote, "ls-tree", "-r", "refs/sbx/fence/t1"), "a marker holds no file")
	assert.Empty(t, w.run(w.remote, "log", "--format=%P", "refs/sbx/fence/t1"), "a marker has no parent")
	w.run(w.remote, "fsck", "--strict", "--no-dangling")
	w.empty()
}

func TestPublishOntoTheBranchItStartedFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "main")
	base, err := w.git.Base(t.Context(), p.Target)
	require.NoError(t, err)
	require.Equal(t, w.base, base)
	p.Base = base
	_, err = w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/main"))
}

// Its prerequisite lies behind the branch: all of the history is needed to decide whether
// the work contains it.
func TestPublishOfABundleThatReachesBehindTheBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.commit("second")
	w.run(w.inside, "push", "--quiet", "origin", "main")
	p := w.work("t1", "main")
	p.Bundle, p.Base = w.collect(w.base), second
	b, err := CheckBundle(p.Bundle)
	require.NoError(t, err)
	require.Equal(t, Bundle{Head: w.head(), Prerequisites: []string{w.base}}, b)
	_, err = w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/main"))
}

// The work builds on another branch, and only the history between shows that it contains
// this one.
func TestPublishOfWorkThatIsAheadByAnotherBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("on another branch")
	between := w.commit("and one more")
	w.run(w.inside, "push", "--quiet", "origin", "HEAD:next")
	p := w.work("t1", "main")
	p.Bundle, p.Base = w.collect(between), w.base
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/main"))
}

func TestPublishOfAWholeHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	p.Bundle = w.collect("")
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
}

func TestSecondPublishIsANoOp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	_, err := w.git.Publish(t.Context(), p)
	require.NoError(t, err)
	first, fence := w.head(), w.at("refs/sbx/fence/t1")
	w.run(w.remote, "update-ref", "refs/heads/agent/t1", w.base) // another author has moved the branch
	again, err := w.git.Publish(t.Context(), w.work("t1", "agent/t1"))
	require.NoError(t, err)
	assert.Equal(t, Receipt{Commit: first, Already: true}, again, "the receipt names what is public, not what was offered")
	assert.Equal(t, w.base, w.at("refs/heads/agent/t1"))
	assert.Equal(t, fence, w.at("refs/sbx/fence/t1"))
}

// The read before the push sees nothing: the other publish comes between the two.
func TestTwoPublishersOfOneTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	first := w.head()
	q := w.work("t1", "agent/other")
	slow := *w.git
	slow.beforePush = func() {
		_, err := w.git.Publish(t.Context(), p)
		assert.NoError(t, err)
	}
	got, err := slow.Publish(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, Receipt{Commit: first, Already: true}, got)
	assert.Empty(t, w.at("refs/heads/agent/other"))
}

func TestPoisonThenPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "main")
	p.Base = w.base
	at := time.Unix(1_700_000_000, 0).UTC()
	m, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann on\nhost", at)
	require.NoError(t, err)
	assert.Equal(t, Mark{Verdict: Stopped, Task: "t1", By: "ann on host", At: at}, m)
	_, err = w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrStopped)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.ErrorContains(t, err, "ann on host at 2023-11-14T22:13:20Z")
	assert.Equal(t, w.base, w.at("refs/heads/main"))
	again, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "bob", at.Add(time.Hour))
	require.NoError(t, err)
	assert.Equal(t, m, again, "the first stop stands")
	w.empty()
}

func TestPublishThenPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.git.Publish(t.Context(), w.work("t1", "agent/t1"))
	require.NoError(t, err)
	m, err := w.git.ForbidPublish(t.Context(), "t1", w.target("agent/t1"), "ann", w.git.Now())
	require.NoError(t, err)
	assert.Equal(t, Published, m.Verdict)
	assert.Equal(t, w.head(), m.Commit)
	assert.Equal(t, w.head(), w.at("refs/heads/agent/t1"))
}

// The stop comes after the publisher's last read: only the remote can reject the push.
func TestPoisonBetweenLookAndPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	slow := *w.git
	slow.beforePush = func() {
		m, err := w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
		require.NoError(t, err)
		assert.Equal(t, Stopped, m.Verdict)
	}
	_, err := slow.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrStopped)
	assert.Empty(t, w.at("refs/heads/agent/t1"))
}

func TestMovedBranch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		branch string
		base   func(w *world) string
		moves  func(w *world)
	}{
		"it exists and must not": {"main", func(*world) string { return "" }, func(*world) {}},
		"it is gone":             {"agent/t1", func(w *world) string { return w.base }, func(*world) {}},
		"between look and push": {"agent/t1", func(*world) string { return "" }, func(w *world) {
			w.run(w.remote, "update-ref", "refs/heads/agent/t1", w.base)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.work("t1", tc.branch)
			p.Base = tc.base(w)
			w.git.beforePush = func() { tc.moves(w) }
			_, err := w.git.Publish(t.Context(), p)
			require.ErrorIs(t, err, ErrMoved)
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			assert.Empty(t, w.at("refs/sbx/fence/t1"), "nothing was decided")
			assert.NotEqual(t, w.head(), w.at("refs/heads/"+tc.branch))
			assert.Equal(t, name == "it is gone", strings.Contains(err.Error(), "the branch agent/t1 was deleted meanwhile"), err)
		})
	}
}

func TestWorkThatWouldThrowCommitsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "main")
	w.run(w.inside, "checkout", "--quiet", "--detach", w.base)
	p.Base = w.commit("somebody else's")
	w.run(w.inside, "push", "--quiet", "origin", "HEAD:main")
	_, err := w.git.Publish(t.Context(), p)
	require.ErrorIs(t, err, ErrMoved)
	assert.Equal(t, p.Base, w.at("refs/heads/main"))
	assert.Empty(t, w.at("refs/sbx/fence/t1"))
}

func TestMissingBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	local := w.commit("never pushed")
	p := w.work("t1", "agent/t1")
	p.Bundle = w.collect(local)
	_, err := w.git.Publish(t.Context(), p)
	require.Equal(t, fault.KindUsage, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, local)
	assert.Empty(t, w.at("refs/heads/agent/t1"))
}

func TestOneRefusedRefHoldsBoth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ hook, line, word string }{
		"the fence":  {"update", `case $1 in refs/sbx/*) echo "no such refs here" >&2; exit 1;; esac`, "no such refs here"},
		"the branch": {"update", `case $1 in refs/heads/*) echo "protected" >&2; exit 1;; esac`, "protected"},
		"the push":   {"pre-receive", `printf 'not \033[31mtoday\n' >&2; exit 1`, "not  [31mtoday"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.work("t1", "agent/t1")
			w.hook(tc.hook, tc.line)
			_, err := w.git.Publish(t.Context(), p)
			require.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.word)
			require.NotErrorIs(t, err, ErrInDoubt)
			assert.Empty(t, w.at("refs/heads/agent/t1"))
			assert.Empty(t, w.at("refs/sbx/fence/t1"))
		})
	}
}

func TestFenceRefThatIsNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.work("t1", "agent/t1")
	w.run(w.remote, "update-ref", "refs/sbx/fence/t1", w.base)
	_, err := w.look("t1", p.Target)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	_, err = w.git.ForbidPublish(t.Context(), "t1", p.Target, "ann", w.git.Now())
	require.Error(t, err, "it is no proof of a stop")
	_, err = w.git.Publish(t.Context(), p)
	require.Error(t, err)
	assert.Empty(t, w.at("refs/heads/agent/t1"))
	// a marker of another task is no proof either
	_, err = w.git.ForbidPublish(t.Context(), "t2", p.Target, "ann", w.git.Now())
	require.NoError(t, err)
	w.run(w.remote, "update-ref", "refs/sbx/fence/t1", "refs/sbx/fence/t2")
	_, err = w.look("t1", p.Target)
	assert.ErrorContains(t, err, "another task")
}

func TestLookAtNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m, err := w.look("t1", w.target("b"))
	require.NoError(t, err)
	assert.Equal(t, Mark{Verdict: Absent, Task: "t1"}, m)
	_, err = w.look("t1", Target{Remote: "http://127.0.0.1:9/x.git", Branch: "b"})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	_, err = w.git.ForbidPublish(t.Context(), "t1", Target{Remote: "http://127.0.0.1:9/x.git", Branch: "b"}, "ann", w.git.Now())
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v", err)
	for _, task := range []string{"", "../x", "-x", "a b", "x.lock", "a..b", "a/b"} {
		_, err = w.git.ForbidPublish(t.Context(), task, w.target("b"), "ann", w.git.Now())
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), task)
	}
}
