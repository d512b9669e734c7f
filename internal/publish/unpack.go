package publish

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// unpack brings a bundle's commits into the scratch repository: first what they
// build on comes from the remote, then git takes the pack only when each object
// in it keeps git's rules (no .git inside a tree, no hostile .gitmodules) and
// nothing is missing.
func (s *scratch) unpack(ctx context.Context, path, base string) (Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return Bundle{}, fault.New(fault.KindUnknown, "the bundle: %w", err)
	}
	defer f.Close()
	pack := bufio.NewReader(f)
	b, err := readHeader(pack)
	if err != nil {
		return Bundle{}, err
	}
	if err := s.adopt(ctx, b.Head); err != nil {
		return Bundle{}, err
	}
	if err := s.fetchBase(ctx, b, base); err != nil {
		return Bundle{}, err
	}
	p, err := s.git.run(ctx, call{dir: s.dir, args: []string{"index-pack", "--stdin", "--fix-thin", "--strict"}, stdin: pack})
	if err != nil {
		return Bundle{}, err
	}
	if p.cut {
		return Bundle{}, refuseBundle("could not be unpacked within the limit of one call")
	}
	if p.code != 0 {
		return Bundle{}, refuseBundle("cannot be unpacked: %s", s.said(p))
	}
	return b, s.whole(ctx, b)
}

// whole proves that the commit is there and that no object it needs is missing.
func (s *scratch) whole(ctx context.Context, b Bundle) error {
	args := []string{"rev-list", "--objects", "--quiet", b.Head, "--not"}
	p, err := s.git.run(ctx, call{dir: s.dir, args: append(args, b.Prerequisites...)})
	if err != nil {
		return err
	}
	if p.cut || p.code != 0 {
		return refuseBundle("is not whole: %s", s.said(p))
	}
	return s.isCommit(ctx, b.Head)
}

func (s *scratch) isCommit(ctx context.Context, oid string) error {
	kind, err := s.local(ctx, "", "cat-file", "-t", oid)
	if err == nil && strings.TrimSpace(kind) != "commit" {
		return refuseBundle("brings a %s where a commit is needed", oneLine(kind, 20))
	}
	return err
}

// fetchBase brings what the bundle builds on. Where the branch is one of those
// commits its history is not needed; else all of it is, to tell whether the work
// contains the branch.
func (s *scratch) fetchBase(ctx context.Context, b Bundle, base string) error {
	wanted := b.Prerequisites
	depth := []string{"--depth=1"}
	if base != "" && !slices.Contains(wanted, base) {
		wanted, depth = append(slices.Clone(wanted), base), nil
	}
	if len(wanted) == 0 {
		return nil
	}
	specs := make([]string, 0, len(wanted))
	for i, oid := range wanted {
		specs = append(specs, fmt.Sprintf("+%s:refs/base/%d", oid, i))
	}
	p, err := s.fetch(ctx, depth, specs)
	if err != nil || !p.cut && p.code == 0 {
		return err
	}
	if kind, _ := kindOf(p.errors); p.cut || kind != fault.KindUnavailable {
		return s.failed("fetch what the work builds on", p)
	}
	return s.fetchAll(ctx, wanted)
}

func (s *scratch) fetch(ctx context.Context, depth, specs []string) (printed, error) {
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head"}, depth...)
	return s.far(ctx, append(append(args, "--", s.remote), specs...)...)
}

// fetchAll asks for all branches: an old server gives no commit by its name, and
// one that is nowhere has to be named in the error.
func (s *scratch) fetchAll(ctx context.Context, wanted []string) error {
	p, err := s.fetch(ctx, nil, []string{"+refs/heads/*:refs/base/all/*"})
	if err != nil {
		return err
	}
	if p.cut || p.code != 0 {
		return s.failed("fetch what the work builds on", p)
	}
	for _, oid := range wanted {
		has, err := s.git.run(ctx, call{dir: s.dir, args: []string{"cat-file", "-e", oid + "^{commit}"}})
		if err != nil {
			return err
		}
		if has.code != 0 {
			return fault.Usage("the work builds on commit %s, which no branch of the remote has", oid).
				WithHint("push that commit first, or launch with --base on a commit that the remote has")
		}
	}
	return nil
}
