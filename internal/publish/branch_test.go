package publish

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestBranchNamesAreOfGitFlow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"feature/login", "bugfix/T-12_x.y", "release/1.2.0", "hotfix/a/b", "support/2.x"} {
		require.NoError(t, CheckFlowBranch(name), name)
	}
	for _, name := range []string{
		"", "main", "master", "develop", "feature", "feature/", "agent/fix", "Feature/x", "feature/..", "feature/a b", "feature/a=b", "feature/-x",
		"feature/x.lock", "feature//x", "feature/\x1b[2J", "-feature/x", "refs/heads/feature/x", "feature/" + strings.Repeat("x", 200), "feature/ü",
	} {
		err := CheckFlowBranch(name)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%q: %v", name, err)
		if err != nil {
			assert.NotContains(t, err.Error(), "\x1b")
		}
	}
}

const branchTask = "t-abcdefghijkl"

func (w *world) flow() Target { return Target{Remote: w.remote, Branch: "feature/work"} }

func (w *world) made() string { return w.at("refs/heads/feature/work") }

func (w *world) remove(t *testing.T) (BranchEnd, error) {
	t.Helper()
	return w.git.RemoveBranch(t.Context(), branchTask, w.flow(), "bob", time.Unix(1_800_000_000, 0))
}

func TestABranchIsMadeOnceAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	commit, err := w.git.PlanBranch(t.Context(), w.flow(), "")
	require.NoError(t, err)
	assert.Equal(t, w.base, commit)
	assert.Empty(t, w.made(), "a plan changes nothing")
	for range 2 {
		made, err := w.git.MakeBranch(t.Context(), branchTask, w.flow(), commit)
		require.NoError(t, err)
		assert.Equal(t, w.base, made)
		assert.Equal(t, w.base, w.made())
	}
	_, err = w.git.PlanBranch(t.Context(), w.flow(), "")
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.ErrorContains(t, err, "exists at "+w.remote+" at "+w.base)
	_, err = w.git.MakeBranch(t.Context(), "t-other", w.flow(), commit)
	require.ErrorContains(t, err, "exists at")
	assert.Empty(t, w.at(fenceRef(makeFence("t-other"))))
	for range 2 {
		end, err := w.remove(t)
		require.NoError(t, err)
		assert.Equal(t, BranchRemoved, end)
		assert.Empty(t, w.made())
	}
	assert.Equal(t, w.base, w.at("refs/heads/main"))
}

func TestABranchIsMadeAtItsBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.commit("second")
	w.run(w.inside, "push", "--quiet", "origin", "HEAD:refs/heads/side")
	for base, want := range map[string]string{"side": second, "refs/heads/side": second, w.base: w.base, "main": w.base} {
		commit, err := w.git.PlanBranch(t.Context(), w.flow(), base)
		require.NoError(t, err)
		assert.Equal(t, want, commit, base)
	}
	for _, base := range []string{"nowhere", "origin/main", "-x..", "*"} {
		_, err := w.git.PlanBranch(t.Context(), w.flow(), base)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%s: %v", base, err)
	}
	_, err := w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base) // not the tip of any other branch but main
	require.NoError(t, err)
	_, err = w.git.MakeBranch(t.Context(), "t-none", Target{Remote: w.remote, Branch: "feature/none"}, strings.Repeat("1", 40))
	require.Error(t, err)
	assert.Empty(t, w.at("refs/heads/feature/none"))
}

// Two tasks that make the same branch at the same commit in one moment: one has it.
func TestTwoMakersOfOneBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := w.git.openScratch(t.Context(), w.flow())
	require.NoError(t, err)
	defer s.remove()
	require.NoError(t, s.fetchCommit(t.Context(), w.base))
	_, err = w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
	require.NoError(t, err)
	marker, err := s.storeMark(t.Context(), Mark{Verdict: Published, Task: makeFence("t-other"), Commit: w.base, Branch: w.flow().Branch})
	require.NoError(t, err)
	updates := []refUpdate{{w.flow().branchRef(), "", w.base}, {fenceRef(makeFence("t-other")), "", marker}}
	result, said, err := s.pushAtomically(t.Context(), updates...)
	require.NoError(t, err)
	require.Equal(t, pushAccepted, result, "git takes the branch for pushed")
	flag, _ := refStatus(said.out, w.flow().branchRef())
	require.Equal(t, "=", flag)
	require.ErrorContains(t, s.returnFence(t.Context(), w.flow(), updates), "exists at")
	assert.Empty(t, w.at(fenceRef(makeFence("t-other"))))
	assert.Equal(t, w.base, w.made())
}

// The commits of others are never removed, not even those that come during the removal.
func TestABranchThatHasMovedStays(t *testing.T) {
	t.Parallel()
	for name, during := range map[string]bool{"before": false, "during": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, err := w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
			require.NoError(t, err)
			next := w.commit("next")
			push := func() { w.run(w.inside, "push", "--quiet", "origin", "HEAD:refs/heads/feature/work") }
			if calls := 0; during {
				w.git.beforePush = func() {
					if calls++; calls == 2 { // the first is that of the fence
						push()
					}
				}
			} else {
				push()
			}
			end, err := w.remove(t)
			require.NoError(t, err)
			assert.Equal(t, BranchMoved, end)
			assert.Equal(t, next, w.made())
		})
	}
}

// A maker that was suspended, or whose push hangs, makes nothing after the end of its task.
func TestALateMakerMakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	late := *w.git
	late.beforePush = func() {
		end, err := w.remove(t)
		require.NoError(t, err)
		assert.Equal(t, BranchNeverMade, end)
	}
	_, err := late.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
	require.Error(t, err)
	assert.Empty(t, w.made())
	_, err = w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
	require.ErrorIs(t, err, ErrStopped)
	assert.Empty(t, w.made())
}

func TestARemoteMayRefuseABranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook("update", `case "$1 $3" in refs/heads/feature/*) echo "no features here" >&2; exit 1;; esac`)
	_, err := w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "no features here")
	require.NotErrorIs(t, err, ErrInDoubt)
	assert.Empty(t, w.made())
	assert.Empty(t, w.at(fenceRef(makeFence(branchTask))), "both or neither")
	w.hook("update", "exit 0")
	_, err = w.git.MakeBranch(t.Context(), branchTask, w.flow(), w.base)
	require.NoError(t, err)
	w.run(w.remote, "config", "receive.denyDeletes", "true")
	_, err = w.remove(t)
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	assert.Equal(t, w.base, w.made())
	require.NoError(t, os.Rename(w.remote, w.remote+".away"))
	_, err = w.remove(t)
	require.Error(t, err, "without the remote it is not known to be removed")
}
