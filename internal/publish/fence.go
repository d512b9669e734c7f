package publish

import (
	"context"
	"strings"
	"time"

	"sbx/internal/fault"
)

// Poison creates the task's fence ref so that nothing of it can be published any more, and
// returns what the remote then holds: Stopped, by this call or an earlier one, or
// Published, when it comes too late. Without an answer of the remote there is an error and
// no verdict. It may be repeated.
func (g *Git) Poison(ctx context.Context, task string, t Target, by string, at time.Time) (Mark, error) {
	if err := checkTask(task); err != nil {
		return Mark{}, err
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return Mark{}, err
	}
	defer s.remove()
	mark := Mark{Verdict: Stopped, Task: task, By: oneLine(by, maxBy), At: at.UTC().Truncate(time.Second)}
	if g.beforePush != nil {
		g.beforePush()
	}
	pauses := newPushPauses()
	for try := 0; ; try++ {
		f, said, err := s.createFence(ctx, mark)
		if err != nil {
			return Mark{}, inDoubt("stop publishing to "+t.String(), err)
		}
		if f == pushAccepted {
			return mark, nil
		}
		held, again, err := s.resolveFailedFence(ctx, task, f, said)
		if !again || try == pushTries {
			return held, err
		}
		if err := pauses.Sleep(ctx); err != nil {
			return Mark{}, err
		}
	}
}

// createFence pushes a marker to a fence ref that must not exist.
func (s *scratch) createFence(ctx context.Context, mark Mark) (pushResult, gitOutput, error) {
	marker, err := s.storeMark(ctx, mark)
	if err != nil {
		return pushNotSent, gitOutput{}, err
	}
	f, said, err := s.pushAtomically(ctx, refUpdate{fenceRef(mark.Task), "", marker})
	if err == nil && s.format == sha1Format && strings.Contains(said.errors, "hash algorithm") {
		if err := s.recreate(ctx, sha256Format); err != nil {
			return pushNotSent, gitOutput{}, err
		}
		return s.createFence(ctx, mark)
	}
	return f, said, err
}

// storeMark stores a marker in the scratch repository and returns its id.
func (s *scratch) storeMark(ctx context.Context, mark Mark) (string, error) {
	tree, err := s.runLocal(ctx, "", "hash-object", "-t", "tree", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	oid, err := s.runLocal(ctx, mark.commitObject(strings.TrimSpace(tree)), "hash-object", "-t", "commit", "-w", "--stdin")
	return strings.TrimSpace(oid), err
}

// resolveFailedFence returns what the remote holds after the push of a marker failed, and
// whether to push again. Without a marker there the result is unknown.
func (s *scratch) resolveFailedFence(ctx context.Context, task string, f pushResult, said gitOutput) (Mark, bool, error) {
	const op = "stop publishing"
	if f == pushNotSent {
		return Mark{}, false, s.remoteError(op, said)
	}
	m, err := s.readFence(ctx, task)
	if err != nil {
		return Mark{}, false, err
	}
	if m.Verdict != Absent {
		return m, false, nil
	}
	why := strings.TrimSpace(rejectReasons(said.out, refUpdate{ref: fenceRef(task)}) + " " + s.describeOutput(said))
	if f == pushRejected && !isBusy(why) {
		return Mark{}, false, fault.New(fault.KindRefused, "%s: the remote refused the fence ref: %s", op, why).
			WithHint("this host keeps refs/sbx closed: a publish there cannot be held by it either; take the credentials away")
	}
	return Mark{}, !said.cutShort, fault.New(fault.KindUnavailable, "%s: %w: %s", op, ErrInDoubt, why).WithHint("try again: it is safe to repeat")
}

// markTime is the time for markers; without a clock 1970.
func (g *Git) markTime() time.Time {
	if g.Now == nil {
		return time.Unix(0, 0)
	}
	return g.Now()
}

// Base is the commit of the branch now, "" when there is no such branch.
func (g *Git) Base(ctx context.Context, t Target) (string, error) {
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return "", err
	}
	defer s.remove()
	seen, err := s.readRefs(ctx, t.branchRef())
	return seen[t.branchRef()], err
}

// readFence reads the state of a task's fence ref. Absent is a result; a remote that cannot
// be asked is an error.
func (s *scratch) readFence(ctx context.Context, task string) (Mark, error) {
	seen, err := s.readRefs(ctx, fenceRef(task))
	if err != nil {
		return Mark{}, err
	}
	return s.readMark(ctx, task, seen)
}

// readRefs returns the commits of the named refs; a ref that does not exist is missing from
// the map.
func (s *scratch) readRefs(ctx context.Context, names ...string) (map[string]string, error) {
	p, err := s.runRemote(ctx, append([]string{"ls-remote", "--quiet", "--", s.remote}, names...)...)
	if err != nil {
		return nil, err
	}
	if p.cutShort || p.code != 0 {
		return nil, s.remoteError("ask the remote for "+names[0], p)
	}
	seen := map[string]string{}
	for line := range strings.Lines(p.out) {
		oid, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !isOID(oid) {
			return nil, fault.New(fault.KindUnavailable, "the remote's list of refs is garbage: %q", oneLine(line, 80))
		}
		seen[name] = oid
	}
	return seen, nil
}

// readMark reads the marker to which the fence ref points.
func (s *scratch) readMark(ctx context.Context, task string, seen map[string]string) (Mark, error) {
	oid := seen[fenceRef(task)]
	if oid == "" {
		return Mark{Verdict: Absent, Task: task}, nil
	}
	if err := s.matchFormat(ctx, oid); err != nil {
		return Mark{}, err
	}
	p, err := s.runRemote(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--", s.remote, "+"+fenceRef(task)+":refs/mark")
	if err != nil {
		return Mark{}, err
	}
	if p.cutShort || p.code != 0 {
		return Mark{}, s.remoteError("read the fence ref", p)
	}
	object, err := s.runLocal(ctx, "", "cat-file", "-p", "refs/mark")
	if err != nil {
		return Mark{}, err
	}
	_, message, _ := strings.Cut(object, "\n\n")
	m, err := parseMark(message)
	if err == nil && m.Task != task {
		err = notMarkerError("it is of another task")
	}
	return m, err
}
