package publish

import (
	"context"
	"strings"

	"sbx/internal/fault"
)

// Base is the commit the branch is at now, "" when there is no such branch.
func (g *Git) Base(ctx context.Context, t Target) (string, error) {
	s, err := g.open(ctx, t)
	if err != nil {
		return "", err
	}
	defer s.close()
	seen, err := s.refs(ctx, t.ref())
	return seen[t.ref()], err
}

// look says what the remote holds of a task. Absent is an answer; a remote that
// cannot be asked is an error.
func (s *scratch) look(ctx context.Context, task string) (Mark, error) {
	seen, err := s.refs(ctx, fenceRef(task))
	if err != nil {
		return Mark{}, err
	}
	return s.mark(ctx, task, seen)
}

// refs are the commits that the named refs are at; one that does not exist is
// missing from the map.
func (s *scratch) refs(ctx context.Context, names ...string) (map[string]string, error) {
	p, err := s.far(ctx, append([]string{"ls-remote", "--quiet", "--", s.remote}, names...)...)
	if err != nil {
		return nil, err
	}
	if p.cut || p.code != 0 {
		return nil, s.failed("ask the remote for "+names[0], p)
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

// mark reads the marker that the fence ref is at.
func (s *scratch) mark(ctx context.Context, task string, seen map[string]string) (Mark, error) {
	oid := seen[fenceRef(task)]
	if oid == "" {
		return Mark{Verdict: Absent, Task: task}, nil
	}
	if err := s.adopt(ctx, oid); err != nil {
		return Mark{}, err
	}
	p, err := s.far(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--", s.remote, "+"+fenceRef(task)+":refs/mark")
	if err != nil {
		return Mark{}, err
	}
	if p.cut || p.code != 0 {
		return Mark{}, s.failed("read the fence ref", p)
	}
	object, err := s.local(ctx, "", "cat-file", "-p", "refs/mark")
	if err != nil {
		return Mark{}, err
	}
	_, message, _ := strings.Cut(object, "\n\n")
	m, err := parseMark(message)
	if err == nil && m.Task != task {
		err = notAMarker("it is of another task")
	}
	return m, err
}
