package publish

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"sbx/internal/fault"
)

// contended is how often a push is sent again that lost only the remote's lock.
const contended = 4

// errContended marks such a loss.
var errContended = errors.New("the remote was busy with the same refs")

// pause waits 100 ms, 200 ms, 400 ms and so on.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(100 * time.Millisecond << try)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// busy tells from the remote's words that somebody else held the refs. A hook or
// a rule of the host is not busy: it says the same the next time.
func busy(reasons string) bool {
	return regexp.MustCompile(`(?i)(cannot|failed to|unable to) lock|failed to update ref|already exists|failed to start transaction|incorrect old value`).MatchString(reasons)
}

// sentNothing tells that git ended before the remote took a command. What a hook
// prints does not count: by then the commands were there.
func sentNothing(words string) bool {
	var own []string
	for line := range strings.Lines(words) {
		if !strings.HasPrefix(line, "remote:") {
			own = append(own, line)
		}
	}
	kind, _ := kindOf(strings.Join(own, ""))
	return kind != fault.KindUnavailable
}

func inDoubt(op string, cause error) error {
	return fault.New(fault.KindUnavailable, "%s: %w: %w", op, ErrInDoubt, cause).
		WithHint("the task's fence ref on the remote tells; `sbx stop` settles it either way")
}

// lost is what became of a publish whose push did not go through: the remote is
// asked, and only what it holds counts.
func (s *scratch) lost(ctx context.Context, p Push, f fate, said printed, updates []update) (Receipt, error) {
	switch f {
	case refused:
		return Receipt{}, s.failed("publish to "+p.Target.String(), said)
	case torn:
		return Receipt{}, fault.New(fault.KindPartial, "publish to %s: %w: %s", p.Target, ErrTorn, reasons(said.out, updates...)).
			WithHint("this host hides or guards refs/sbx or the branch; look at both, then publish with --publish CMD")
	default:
	}
	seen, err := s.refs(ctx, fenceRef(p.Task), p.Target.ref())
	if err != nil {
		return Receipt{}, s.unseen(p, f, err)
	}
	if marker := updates[1].to; seen[fenceRef(p.Task)] == marker {
		return Receipt{Commit: updates[0].to, Marker: marker}, nil // it arrived; only the answer was lost
	}
	receipt, err := s.decided(ctx, p, seen)
	if err != nil || receipt.Already {
		return receipt, err
	}
	if f == open {
		return Receipt{}, s.unseen(p, f, errors.New(s.said(said)))
	}
	if err := moved(p, seen); err != nil {
		return Receipt{}, err
	}
	why := reasons(said.out, updates...)
	if busy(why) {
		return Receipt{}, fault.New(fault.KindUnavailable, "publish to %s: %w: %s", p.Target, errContended, why).WithHint("try again")
	}
	return Receipt{}, fault.New(fault.KindRefused, "the remote refused to publish to %s: %s", p.Target, strings.TrimSpace(why+" "+s.said(said))).
		WithHint("a hook or a rule of the host keeps the branch or refs/sbx; nothing was changed")
}

// unseen is a push whose end could not be seen: after a rejection nothing
// happened, else nobody knows.
func (s *scratch) unseen(p Push, f fate, cause error) error {
	if f == rejected {
		return cause
	}
	return inDoubt("publish to "+p.Target.String(), cause)
}
