package publish

import (
	"context"
	"strings"
	"time"

	"sbx/internal/fault"
)

// Poison creates the task's fence ref so that nothing of it can be published any
// more, and says what the remote holds then: Stopped, by this call or an earlier
// one, or Published, when it comes too late. It never guesses: without an answer
// of the remote there is an error and no verdict, and calling it again is safe.
func (g *Git) Poison(ctx context.Context, task string, t Target, by string, at time.Time) (Mark, error) {
	if err := checkTask(task); err != nil {
		return Mark{}, err
	}
	s, err := g.open(ctx, t)
	if err != nil {
		return Mark{}, err
	}
	defer s.close()
	mark := Mark{Verdict: Stopped, Task: task, By: oneLine(by, maxBy), At: at.UTC().Truncate(time.Second)}
	if g.beforePush != nil {
		g.beforePush()
	}
	for try := 0; ; try++ {
		f, said, err := s.create(ctx, mark)
		if err != nil {
			return Mark{}, inDoubt("stop publishing to "+t.String(), err)
		}
		if f == taken {
			return mark, nil
		}
		held, again, err := s.held(ctx, task, f, said)
		if !again || try == contended {
			return held, err
		}
		if err := pause(ctx, try); err != nil {
			return Mark{}, err
		}
	}
}

// create pushes a marker to a fence ref that must not exist.
func (s *scratch) create(ctx context.Context, mark Mark) (fate, printed, error) {
	marker, err := s.write(ctx, mark)
	if err != nil {
		return refused, printed{}, err
	}
	f, said, err := s.push(ctx, update{fenceRef(mark.Task), "", marker})
	if err == nil && s.format == sha1Format && strings.Contains(said.errors, "hash algorithm") {
		if err := s.remake(ctx, sha256Format); err != nil {
			return refused, printed{}, err
		}
		return s.create(ctx, mark)
	}
	return f, said, err
}

// write stores a marker in the scratch repository and gives its id.
func (s *scratch) write(ctx context.Context, mark Mark) (string, error) {
	tree, err := s.local(ctx, "", "hash-object", "-t", "tree", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	oid, err := s.local(ctx, mark.object(strings.TrimSpace(tree)), "hash-object", "-t", "commit", "-w", "--stdin")
	return strings.TrimSpace(oid), err
}

// held is what the remote holds after a push of a marker did not go through, and
// whether to push again. Without a marker there, nothing is known.
func (s *scratch) held(ctx context.Context, task string, f fate, said printed) (Mark, bool, error) {
	const op = "stop publishing"
	if f == refused {
		return Mark{}, false, s.failed(op, said)
	}
	m, err := s.look(ctx, task)
	if err != nil {
		return Mark{}, false, err
	}
	if m.Verdict != Absent {
		return m, false, nil
	}
	why := strings.TrimSpace(reasons(said.out, update{ref: fenceRef(task)}) + " " + s.said(said))
	if f == rejected && !busy(why) {
		return Mark{}, false, fault.New(fault.KindRefused, "%s: the remote refused the fence ref: %s", op, why).
			WithHint("this host keeps refs/sbx closed: a publish there cannot be held by it either; take the credentials away")
	}
	return Mark{}, !said.cut, fault.New(fault.KindUnavailable, "%s: %w: %s", op, ErrInDoubt, why).WithHint("try again: it is safe to repeat")
}

// now is the clock for markers; without one they are dated 1970.
func (g *Git) now() time.Time {
	if g.Now == nil {
		return time.Unix(0, 0)
	}
	return g.Now()
}
