package publish

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
)

// flowPrefixes are the kinds of branches in GitFlow that work is done on.
func flowPrefixes() []string {
	return []string{"feature/", "bugfix/", "release/", "hotfix/", "support/"}
}

// CheckFlowBranch accepts a valid git branch name of GitFlow form: a prefix and a slug of
// letters, digits, dots, dashes, underscores and slashes. Errors are fault.KindUsage.
func CheckFlowBranch(name string) error {
	refuse := func(why string) error {
		return fault.Usage("the branch %q %s", oneLine(name, 80), why).
			WithHint("a prefix and a name, such as feature/login-page; the prefixes are %s", strings.Join(flowPrefixes(), " "))
	}
	if why := refProblem(name); why != "" {
		return refuse(why)
	}
	if slices.Contains([]string{"main", "master", "develop"}, name) {
		return refuse("is a permanent branch, on which no task works")
	}
	at := strings.IndexByte(name, '/') + 1
	if !slices.Contains(flowPrefixes(), name[:at]) {
		return refuse("does not begin with a prefix of GitFlow")
	}
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`).MatchString(name[at:]) {
		return refuse("has other characters after its prefix than letters, digits, dots, dashes, underscores and slashes")
	}
	return nil
}

// makeFence is the name of the fence that decides whether a task's branch is made. It is
// another fence than the one of its publication.
func makeFence(task string) string { return task + ".branch" }

// PlanBranch returns the commit at which a branch is to be made: that of the branch base at
// the remote, base itself when it is a commit id, or that of the default branch when base
// is "". It changes nothing. Errors: fault.KindRefused for a branch that exists,
// fault.KindUsage for a base that does not.
func (g *Git) PlanBranch(ctx context.Context, t Target, base string) (string, error) {
	source := "HEAD"
	switch {
	case isOID(base):
		source = ""
	case base != "":
		source = Target{Branch: strings.TrimPrefix(base, "refs/heads/")}.branchRef()
		if why := refProblem(source); why != "" {
			return "", fault.Usage("the base %q %s", oneLine(base, 80), why).WithHint("--base is a branch of the remote or a commit id")
		}
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return "", err
	}
	defer s.remove()
	refs := []string{t.branchRef()}
	if source != "" {
		refs = append(refs, source)
	}
	seen, err := s.readRefs(ctx, refs...)
	if err != nil {
		return "", err
	}
	if at := seen[t.branchRef()]; at != "" {
		return "", branchExistsError(t, at)
	}
	if source == "" {
		return base, nil
	}
	if seen[source] == "" {
		return "", fault.Usage("%s has no %s at which the branch %s could be made", withoutSecrets(t.Remote), source, t.Branch).
			WithHint("--base is a branch of the remote or a commit id; without it the remote needs a default branch")
	}
	return seen[source], nil
}

func branchExistsError(t Target, at string) error {
	remote := withoutSecrets(t.Remote)
	return fault.New(fault.KindRefused, "the branch %s exists at %s at %s", t.Branch, remote, at).
		WithHint("`--push %s=%s` without --branch publishes to it", remote, t.Branch)
}

// MakeBranch makes a task's branch at a commit of the remote and creates the task's fence
// for it, both or neither. It may be repeated: the commit that is returned is the one of
// the first success. ErrInDoubt in fault.KindUnavailable means that the branch may exist, and
// only RemoveBranch shows it; after each other error this call has made nothing.
func (g *Git) MakeBranch(ctx context.Context, task string, t Target, commit string) (string, error) {
	s, mark, err := g.openFenced(ctx, task, t)
	if err != nil {
		return "", err
	}
	defer s.remove()
	switch mark.Verdict {
	case Published:
		return mark.Commit, nil
	case Stopped:
		return "", fault.New(fault.KindRefused, "%w: by %s at %s", ErrStopped, mark.By, mark.At.Format(time.RFC3339))
	case Absent:
	}
	if err := s.fetchCommit(ctx, commit); err != nil {
		return "", err
	}
	marker, err := s.storeMark(ctx, Mark{Verdict: Published, Task: makeFence(task), Commit: commit, Branch: t.Branch, At: g.markTime()})
	if err != nil {
		return "", err
	}
	if g.beforePush != nil {
		g.beforePush()
	}
	updates := []refUpdate{{t.branchRef(), "", commit}, {fenceRef(makeFence(task)), "", marker}}
	pauses := newPushPauses()
	for try := 0; ; try++ {
		busy, err := s.pushBranch(ctx, t, updates)
		if err == nil || !busy || try == pushTries {
			return commit, err
		}
		if err := pauses.Sleep(ctx); err != nil {
			return "", err
		}
	}
}

// pushBranch pushes a new branch and its fence once. Busy reports that nothing was pushed
// only because another push held the refs.
func (s *scratch) pushBranch(ctx context.Context, t Target, updates []refUpdate) (busy bool, err error) {
	op := "make the branch " + t.Branch
	if err := s.checkNoBranch(ctx, t); err != nil {
		return false, err
	}
	result, said, err := s.pushAtomically(ctx, updates...)
	switch {
	case err != nil:
		return false, branchInDoubt(op, err)
	case result == pushAccepted:
		if flag, _ := refStatus(said.out, t.branchRef()); flag == "=" {
			return false, s.returnFence(ctx, t, updates)
		}
		return false, nil
	case result == pushNotSent:
		return false, s.remoteError(op, said)
	case result != pushRejected:
		return false, branchInDoubt(op, errors.New(s.describeOutput(said)))
	}
	if err := s.checkNoBranch(ctx, t); err != nil {
		return false, err
	}
	why := rejectReasons(said.out, updates...)
	return isBusy(why), fault.New(fault.KindRefused, "the remote refused to %s: %s", op, strings.TrimSpace(why+" "+s.describeOutput(said))).
		WithHint("a hook or a rule of the host protects the branch; nothing was changed")
}

func (s *scratch) checkNoBranch(ctx context.Context, t Target) error {
	seen, err := s.readRefs(ctx, t.branchRef())
	if at := seen[t.branchRef()]; err == nil && at != "" {
		return branchExistsError(t, at)
	}
	return err
}

// returnFence deletes the fence of a branch that another process has made at the same
// commit right before: git takes such a ref for pushed, whatever its lease demands.
func (s *scratch) returnFence(ctx context.Context, t Target, updates []refUpdate) error {
	fence := updates[1]
	result, _, err := s.pushAtomically(ctx, refUpdate{fence.ref, fence.to, ""})
	if err != nil || result != pushAccepted {
		return branchInDoubt("make the branch "+t.Branch, errors.Join(errors.New("another process has made it"), err))
	}
	return branchExistsError(t, updates[0].to)
}

func branchInDoubt(op string, cause error) error {
	return fault.New(fault.KindUnavailable, "%s: %w: %w", op, ErrInDoubt, cause).
		WithHint("sbx removes the branch at the end of the task, if it was made")
}

// openFenced opens a scratch repository and reads the fence of a task's branch.
func (g *Git) openFenced(ctx context.Context, task string, t Target) (*scratch, Mark, error) {
	if err := checkTask(makeFence(task)); err != nil {
		return nil, Mark{}, err
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return nil, Mark{}, err
	}
	mark, err := s.readFence(ctx, makeFence(task))
	if err != nil {
		s.remove()
		return nil, Mark{}, err
	}
	return s, mark, nil
}

// fetchCommit fetches one commit of the remote, without its history.
func (s *scratch) fetchCommit(ctx context.Context, commit string) error {
	if err := s.matchFormat(ctx, commit); err != nil {
		return err
	}
	p, err := s.runRemote(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--", s.remote, commit)
	if err == nil && (p.cutShort || p.code != 0) {
		err = s.remoteError("fetch the commit "+commit, p)
	}
	return err
}

// RemoveBranch removes the branch that MakeBranch has made for a task, if it is still at
// its first commit, and prevents a MakeBranch that has not arrived. With an
// error the branch may still exist. It may be repeated.
func (g *Git) RemoveBranch(ctx context.Context, task string, t Target, by string, at time.Time) (BranchEnd, error) {
	mark, err := g.ForbidPublish(ctx, makeFence(task), t, by, at)
	switch {
	case err != nil:
		return "", err
	case mark.Verdict == Stopped:
		return BranchNeverMade, nil
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return "", err
	}
	defer s.remove()
	end, err := s.branchEnd(ctx, t, mark.Commit)
	if err != nil || end != "" {
		return end, err
	}
	if g.beforePush != nil {
		g.beforePush()
	}
	result, said, err := s.pushAtomically(ctx, refUpdate{t.branchRef(), mark.Commit, ""})
	switch {
	case err != nil:
		return "", err
	case result == pushAccepted:
		return BranchRemoved, nil
	}
	if end, err := s.branchEnd(ctx, t, mark.Commit); err == nil && end != "" {
		return end, nil
	}
	op := "remove the branch " + t.String()
	if result == pushRejected && !isBusy(rejectReasons(said.out, refUpdate{ref: t.branchRef()})) {
		return "", fault.New(
			fault.KindRefused, "%s: the remote refused it: %s", op,
			strings.TrimSpace(rejectReasons(said.out, refUpdate{ref: t.branchRef()})+" "+s.describeOutput(said)),
		).
			WithHint("the host does not allow to delete it with these credentials: delete it by hand")
	}
	return "", s.remoteError(op, said)
}

// branchEnd is what became of a branch that was made at a commit; "" where it is still
// there.
func (s *scratch) branchEnd(ctx context.Context, t Target, commit string) (BranchEnd, error) {
	seen, err := s.readRefs(ctx, t.branchRef())
	switch at := seen[t.branchRef()]; {
	case err != nil:
		return "", err
	case at == "":
		return BranchRemoved, nil
	case at != commit:
		return BranchMoved, nil
	}
	return "", nil
}

// BranchEnd is what became of the branch that was made for a task.
type BranchEnd string

// The ends of a branch.
const (
	BranchRemoved   BranchEnd = "removed"    // it does not exist any more
	BranchMoved     BranchEnd = "moved"      // it has other commits, so it stays
	BranchNeverMade BranchEnd = "never made" // and cannot be made any more
)
