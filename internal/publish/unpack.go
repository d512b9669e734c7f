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

// unpackBundle brings a bundle's commits into the scratch repository. What they require is
// fetched from the remote first; then git accepts the pack only when each object keeps
// git's rules (no .git inside a tree, no hostile .gitmodules) and nothing is missing.
func (s *scratch) unpackBundle(ctx context.Context, path, base string) (Bundle, error) {
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
	if err := s.matchFormat(ctx, b.Head); err != nil {
		return Bundle{}, err
	}
	if err := s.fetchBase(ctx, b, base); err != nil {
		return Bundle{}, err
	}
	p, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: []string{"index-pack", "--stdin", "--fix-thin", "--strict"}, stdin: pack})
	if err != nil {
		return Bundle{}, err
	}
	if p.cutShort {
		return Bundle{}, refuseBundle("could not be unpacked within the limit of one call")
	}
	if p.code != 0 {
		return Bundle{}, refuseBundle("cannot be unpacked: %s", s.describeOutput(p))
	}
	return b, s.checkComplete(ctx, b)
}

// checkComplete proves that the commit and all objects it needs are there.
func (s *scratch) checkComplete(ctx context.Context, b Bundle) error {
	args := []string{"rev-list", "--objects", "--quiet", b.Head, "--not"}
	p, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: append(args, b.Prerequisites...)})
	if err != nil {
		return err
	}
	if p.cutShort || p.code != 0 {
		return refuseBundle("is not whole: %s", s.describeOutput(p))
	}
	return s.checkIsCommit(ctx, b.Head)
}

func (s *scratch) checkIsCommit(ctx context.Context, oid string) error {
	kind, err := s.runLocal(ctx, "", "cat-file", "-t", oid)
	if err == nil && strings.TrimSpace(kind) != "commit" {
		return refuseBundle("brings a %s where a commit is needed", oneLine(kind, 20))
	}
	return err
}

// fetchBase fetches the commits that the bundle requires. Where the branch is one of them,
// its history is not needed; otherwise all of it is, to check that the work contains the
// branch.
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
	p, err := s.fetchRefs(ctx, depth, specs)
	if err != nil || !p.cutShort && p.code == 0 {
		return err
	}
	if kind, _ := classifyMessage(p.errors); p.cutShort || kind != fault.KindUnavailable {
		return s.remoteError("fetch what the work builds on", p)
	}
	return s.fetchAllBranches(ctx, wanted)
}

func (s *scratch) fetchRefs(ctx context.Context, depth, specs []string) (gitOutput, error) {
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head"}, depth...)
	return s.runRemote(ctx, append(append(args, "--", s.remote), specs...)...)
}

// fetchAllBranches fetches all branches: an old server cannot fetch a commit by its id. A
// commit that is nowhere is named in the error.
func (s *scratch) fetchAllBranches(ctx context.Context, wanted []string) error {
	p, err := s.fetchRefs(ctx, nil, []string{"+refs/heads/*:refs/base/all/*"})
	if err != nil {
		return err
	}
	if p.cutShort || p.code != 0 {
		return s.remoteError("fetch what the work builds on", p)
	}
	for _, oid := range wanted {
		has, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: []string{"cat-file", "-e", oid + "^{commit}"}})
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
