package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

// MadeBranch is a branch at a remote that exists for one task. It is removed at the end of
// the task when it is still at its first commit.
type MadeBranch struct {
	Target string    `json:"target"` // REMOTE=BRANCH, without credentials
	Commit string    `json:"commit"` // at which it is made
	At     time.Time `json:"at"`     // of the record, before the push
	Made   bool      `json:"made,omitempty"`
	// End is what became of it: "published", "removed", "moved" (others have pushed to it),
	// "never made"; "" = it is not known yet.
	End string `json:"end,omitempty"`
}

const (
	branchPublished = "published"
	branchNeverMade = "never made"
)

// hasBranch reports whether the remote may have a branch that was made for the task, and
// that its end has to remove.
func (t *Task) hasBranch() bool { return t.Branch != nil && t.Branch.End == "" }

// branchBefore is the commit at which the branch to publish to was, or was made; "" = there was none. A branch that has
// been deleted since is not made again.
func (t *Task) branchBefore() string {
	if t.Branch != nil {
		return t.Branch.Commit
	}
	return t.Onto
}

// diedWithBranch reports whether a branch was made and no attempt was begun. Without its
// process such a task is concluded at once: it never ran, so its key is free.
func (t *Task) diedWithBranch() bool {
	return t.hasBranch() && len(t.Attempts) == 0 && t.Phase == Working
}

// makeBranch makes the task's branch at the remote, unless an earlier process did. The
// record comes first, so that each later process knows what to remove.
func (r *Runner) makeBranch(ctx context.Context, t Task) (err error) {
	if !t.Spec.NewBranch || len(t.Attempts) > 0 || t.Branch != nil && t.Branch.Made {
		return nil
	}
	first := t.Branch == nil
	if first {
		if t, err = r.noteBranch(ctx, t); err != nil {
			return err
		}
	}
	r.o.CrashPoint("branch noted")
	commit, madeNone, err := r.o.Publisher.MakeBranch(ctx, t)
	r.o.CrashPoint("branch made")
	switch {
	case err == nil:
		return r.changeBranch(ctx, t, func(b *MadeBranch) { b.Made, b.Commit = true, commit })
	case madeNone && first: // where this cannot be written, the remote is asked at the end
		_ = r.changeBranch(ctx, t, func(b *MadeBranch) { b.End = branchNeverMade })
	}
	return unpublishableError{err}
}

// noteBranch records the branch that is about to be made.
func (r *Runner) noteBranch(ctx context.Context, t Task) (Task, error) {
	commit, err := r.o.Publisher.PlanBranch(ctx, t)
	if err != nil {
		return t, unpublishableError{err}
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.checkWorking(t.Fence); err != nil {
			return err
		}
		n.Branch = &MadeBranch{Target: n.Spec.Push, Commit: commit, At: n.ReadAt}
		n.addNote("branch", n.Branch.Target+" at "+commit)
		return nil
	})
}

func (r *Runner) changeBranch(ctx context.Context, t Task, change func(*MadeBranch)) error {
	_, err := r.changeTask(ctx, t.ID, func(n *Task) error {
		if !n.hasBranch() {
			return errUnchanged
		}
		change(n.Branch)
		return nil
	})
	return err
}

// branchTries is how often the removal of a branch is tried in one run.
const branchTries = 3

// sweepBranchTime is how long a sweep waits for a remote, before it hands the task over.
const sweepBranchTime = 3 * time.Second

// settleBranch removes the branch of a decided task, unless work was published to it. Until
// the remote has answered, the end of the task is not verified.
func (r *Runner) settleBranch(ctx context.Context, t Task) (Task, error) {
	if !t.hasBranch() {
		return t, nil
	}
	end, err := branchPublished, error(nil)
	if t.Publish.State != PublishDone {
		end, err = r.removeBranch(ctx, t)
	}
	switch {
	case ctx.Err() != nil:
		return t, ctx.Err()
	case err != nil && r.settleOnly && r.o.Continue != nil && fault.Retryable(err):
		return r.handOverBranch(ctx, t)
	case err != nil:
		return t, unverifiedError(t, "the branch "+t.Branch.Target+" that was made for it is not removed: "+err.Error())
	}
	r.o.CrashPoint("branch settled")
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if !n.hasBranch() {
			return errUnchanged
		}
		n.Branch.End = end
		n.addNote("branch", end)
		return nil
	})
}

func (r *Runner) removeBranch(ctx context.Context, t Task) (string, error) {
	if r.o.Publisher == nil {
		return "", errors.New("nothing can be asked of its remote here")
	}
	if r.settleOnly {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, sweepBranchTime)
		defer stop()
	}
	for try := 1; ; try++ {
		end, err := r.o.Publisher.RemoveBranch(ctx, t, r.o.Owner.Who)
		if err == nil || !fault.Retryable(err) || try == branchTries || r.settleOnly {
			return end, err
		}
		if err := poll.Sleep(ctx, resolveInterval); err != nil {
			return "", err
		}
	}
}

// handOverBranch gives a task whose remote is slow to a process of its own. Where that
// fails too, the sweeps wait for longer each time.
func (r *Runner) handOverBranch(ctx context.Context, t Task) (Task, error) {
	runner, err := r.o.Continue(ctx, t)
	if err != nil {
		return t, err
	}
	if _, err := r.changeTask(ctx, t.ID, func(n *Task) error {
		n.postponeSweep()
		return n.HandOver(r.o.Owner, runner)
	}); err != nil {
		return t, err
	}
	return t, errSweeping
}
