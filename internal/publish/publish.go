package publish

import (
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
	Bundle string // path of the bundle that the sandbox wrote
	Base   string // the commit the branch must still be at; "" = it must not exist
}

// Receipt is what became public. Already says that an earlier publish of the
// same task did it, perhaps with another commit; this one changed nothing.
type Receipt struct {
	Commit  string
	Marker  string // the commit that the fence ref is at; "" when Already
	Already bool
}

// Publish moves the branch to the bundle's commit and creates the task's fence
// ref, both or neither. Errors: ErrStopped and ErrMoved in fault.KindRefused,
// KindAuth, KindUsage for a missing commit, KindUnsupported without atomic
// pushes, KindUnavailable. ErrInDoubt in KindUnavailable means that the push was
// cut: only Poison tells. ErrTorn in KindPartial means that the remote is not
// atomic: somebody has to look.
func (g *Git) Publish(ctx context.Context, p Push) (Receipt, error) {
	if err := p.valid(); err != nil {
		return Receipt{}, err
	}
	s, err := g.open(ctx, p.Target)
	if err != nil {
		return Receipt{}, err
	}
	defer s.close()
	seen, err := s.refs(ctx, fenceRef(p.Task), p.Target.ref())
	if err != nil {
		return Receipt{}, err
	}
	if receipt, err := s.decided(ctx, p, seen); err != nil || receipt.Already {
		return receipt, err
	}
	if err := moved(p, seen); err != nil {
		return Receipt{}, err
	}
	b, err := s.unpack(ctx, p.Bundle, p.Base)
	if err != nil {
		return Receipt{}, err
	}
	if err := s.contains(ctx, b.Head, p.Base); err != nil {
		return Receipt{}, err
	}
	return s.publish(ctx, p, b.Head)
}

func (p Push) valid() error {
	if err := checkTask(p.Task); err != nil {
		return err
	}
	if p.Base != "" && !isOID(p.Base) {
		return fault.Usage("the base %q is no commit id", oneLine(p.Base, 80))
	}
	return p.Target.valid()
}

// decided is what an existing fence ref makes of a publish.
func (s *scratch) decided(ctx context.Context, p Push, seen map[string]string) (Receipt, error) {
	m, err := s.mark(ctx, p.Task, seen)
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

func moved(p Push, seen map[string]string) error {
	now := seen[p.Target.ref()]
	if now == p.Base {
		return nil
	}
	return fault.New(fault.KindRefused, "%w: %s is at %s, the work started from %s", ErrMoved, p.Target.Branch, orNothing(now), orNothing(p.Base)).
		WithHint("launch the task again from the branch as it is now, or publish to a branch of its own")
}

func orNothing(oid string) string {
	if oid == "" {
		return "nothing (no such branch)"
	}
	return oid
}

// contains refuses work that would throw away commits of the branch.
func (s *scratch) contains(ctx context.Context, commit, base string) error {
	if base == "" {
		return nil
	}
	p, err := s.git.run(ctx, call{dir: s.dir, args: []string{"merge-base", "--is-ancestor", base, commit}})
	switch {
	case err != nil:
		return err
	case p.code == 1:
		return fault.New(fault.KindRefused, "%w: the work does not contain %s, where the branch is", ErrMoved, base).
			WithHint("launch with --base on the branch, or publish to a branch of its own")
	case p.code != 0:
		return fault.New(fault.KindUnknown, "git merge-base: %s", s.said(p))
	}
	return nil
}

func (s *scratch) publish(ctx context.Context, p Push, commit string) (Receipt, error) {
	mark := Mark{Verdict: Published, Task: p.Task, Fence: p.Fence, Commit: commit, Branch: p.Target.Branch, At: s.git.now()}
	marker, err := s.write(ctx, mark)
	if err != nil {
		return Receipt{}, err
	}
	if s.git.beforePush != nil {
		s.git.beforePush()
	}
	updates := []update{{p.Target.ref(), p.Base, commit}, {fenceRef(p.Task), "", marker}}
	for try := 0; ; try++ {
		fate, said, err := s.push(ctx, updates...)
		if err != nil {
			return Receipt{}, inDoubt("publish to "+p.Target.String(), err)
		}
		if fate == taken {
			return Receipt{Commit: commit, Marker: marker}, nil
		}
		receipt, err := s.lost(ctx, p, fate, said, updates)
		if !errors.Is(err, errContended) || try == contended {
			return receipt, err
		}
		if err := pause(ctx, try); err != nil {
			return Receipt{}, err
		}
	}
}
