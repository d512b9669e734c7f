// Package publish makes the work of a finished task public from this host, and prevents
// that after a stop.
//
// Each task has one fence ref on the remote, refs/sbx/fence/<task>. Publishing is one
// atomic push that moves the branch and creates the fence ref; stopping creates the same
// ref. The first to create it wins, and the remote itself rejects the other push
// completely, however long a publisher was suspended before. The state of the remote is the
// only evidence of an outcome.
//
// The package runs the host's git and the operator's own publish command. Providers, stores
// and the decision whether a task may be published do not belong here, and no credential
// leaves it in an error, a marker or an argument of a process.
package publish

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
)

// Push is one task's work, ready to become public.
type Push struct {
	Task   string
	Fence  int64 // the task's fence number, for the marker
	Target Target
	Bundle string // path of the bundle from the sandbox
	Base   string // the commit at which the branch must still be; "" = it must not exist
}

// Receipt is what became public. Already reports that an earlier publish of the same task
// did it, perhaps with another commit; this one changed nothing.
type Receipt struct {
	Commit  string
	Marker  string // the commit of the fence ref; "" when Already
	Already bool
}

// Publish moves the branch to the bundle's commit and creates the task's fence ref, both or
// neither. Errors: ErrStopped and ErrMoved in fault.KindRefused, KindAuth, KindUsage for a
// missing commit, KindUnsupported without atomic pushes, KindUnavailable. ErrInDoubt in
// KindUnavailable means that the push was cut: only ForbidPublish shows the result. ErrNotAtomic in
// KindPartial means that the remote is not atomic, and a person has to look.
func (g *Git) Publish(ctx context.Context, p Push) (Receipt, error) {
	if err := p.checkPush(); err != nil {
		return Receipt{}, err
	}
	s, err := g.openScratch(ctx, p.Target)
	if err != nil {
		return Receipt{}, err
	}
	defer s.remove()
	seen, err := s.readRefs(ctx, fenceRef(p.Task), p.Target.branchRef())
	if err != nil {
		return Receipt{}, err
	}
	if receipt, err := s.checkFence(ctx, p, seen); err != nil || receipt.Already {
		return receipt, err
	}
	if err := checkBase(p, seen); err != nil {
		return Receipt{}, err
	}
	b, err := s.unpackBundle(ctx, p.Bundle, p.Base)
	if err != nil {
		return Receipt{}, err
	}
	if err := s.checkContainsBase(ctx, b.Head, p.Base); err != nil {
		return Receipt{}, err
	}
	return s.pushWithFence(ctx, p, b.Head)
}

func (p Push) checkPush() error {
	if err := checkTask(p.Task); err != nil {
		return err
	}
	if p.Base != "" && !isOID(p.Base) {
		return fault.Usage("the base %q is no commit id", oneLine(p.Base, 80))
	}
	return p.Target.checkTarget()
}

// checkFence returns the result of a publish whose fence ref exists.
func (s *scratch) checkFence(ctx context.Context, p Push, seen map[string]string) (Receipt, error) {
	m, err := s.readMark(ctx, p.Task, seen)
	if err != nil {
		return Receipt{}, err
	}
	switch m.Verdict {
	case Published:
		return Receipt{Commit: m.Commit, Already: true}, nil
	case Stopped:
		return Receipt{}, fault.New(fault.KindRefused, "%w: by %s at %s", ErrStopped, m.By, m.At.Format(time.RFC3339))
	default:
		return Receipt{}, nil
	}
}

func checkBase(p Push, seen map[string]string) error {
	now := seen[p.Target.branchRef()]
	if now == p.Base {
		return nil
	}
	const noBranch = "nothing (no such branch)"
	return fault.New(fault.KindRefused, "%w: %s is at %s, the work started from %s", ErrMoved, p.Target.Branch, cmp.Or(now, noBranch), cmp.Or(p.Base, noBranch)).
		WithHint("launch the task again from the branch as it is now, or publish to a branch of its own")
}

// checkContainsBase refuses work that would remove commits from the branch.
func (s *scratch) checkContainsBase(ctx context.Context, commit, base string) error {
	if base == "" {
		return nil
	}
	p, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: []string{"merge-base", "--is-ancestor", base, commit}})
	switch {
	case err != nil:
		return err
	case p.code == 1:
		return fault.New(fault.KindRefused, "%w: the work does not contain %s, where the branch is", ErrMoved, base).
			WithHint("launch with --base on the branch, or publish to a branch of its own")
	case p.code != 0:
		return fault.New(fault.KindUnknown, "git merge-base: %s", s.describeOutput(p))
	}
	return nil
}

func (s *scratch) pushWithFence(ctx context.Context, p Push, commit string) (Receipt, error) {
	mark := Mark{Verdict: Published, Task: p.Task, Fence: p.Fence, Commit: commit, Branch: p.Target.Branch, At: s.git.markTime()}
	marker, err := s.storeMark(ctx, mark)
	if err != nil {
		return Receipt{}, err
	}
	if s.git.beforePush != nil {
		s.git.beforePush()
	}
	updates := []refUpdate{{p.Target.branchRef(), p.Base, commit}, {fenceRef(p.Task), "", marker}}
	pauses := newPushPauses()
	for try := 0; ; try++ {
		fate, said, err := s.pushAtomically(ctx, updates...)
		if err != nil {
			return Receipt{}, inDoubt("publish to "+p.Target.String(), err)
		}
		if fate == pushAccepted {
			return Receipt{Commit: commit, Marker: marker}, nil
		}
		receipt, err := s.resolveFailedPush(ctx, p, fate, said, updates)
		if !errors.Is(err, errContended) || try == pushTries {
			return receipt, err
		}
		if err := pauses.Sleep(ctx); err != nil {
			return Receipt{}, err
		}
	}
}
