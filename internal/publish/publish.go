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
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
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
		return fault.Usage("the base %q is not a commit id", oneLine(p.Base, 80))
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
	if now == "" {
		return fault.New(fault.KindRefused, "%w: the branch %s was deleted meanwhile; the work started from %s", ErrMoved, p.Target.Branch, p.Base).
			WithHint("publish to another branch, or make it again by hand if it was deleted by mistake")
	}
	return fault.New(fault.KindRefused, "%w: %s is at %s, the work started from %s", ErrMoved, p.Target.Branch, now, cmp.Or(p.Base, noBranch)).
		WithHint("launch the task again from the current branch, or publish to another branch")
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
			WithHint("launch with --base on the branch, or publish to another branch")
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

// The oldest git that reads settings from the environment and pushes atomically over http:
// 2.31.
const (
	oldestMajor = 2
	oldestMinor = 31
)

// dropGrace is how long the deletion of a probe's ref may take after ctx has ended.
const dropGrace = 10 * time.Second

// Probe checks early whether a publish could work: git is installed and new enough, and the
// remote accepts atomic pushes with these credentials. It creates, reads and deletes a
// fence ref of its own on the remote. The ref is deleted, within dropGrace, also when ctx
// ends in between.
func (g *Git) Probe(ctx context.Context, t Target) error {
	s, err := g.openChecked(ctx, t)
	if err != nil {
		return err
	}
	defer s.remove()
	mark := Mark{Verdict: Stopped, Task: "probe" + strings.TrimPrefix(filepath.Base(s.dir), "sbx-publish"), By: "probe", At: g.markTime()}
	f, said, err := s.createFence(ctx, mark)
	if f == pushUnknown {
		_ = s.deleteProbeRef(ctx, mark) // the ref may exist; the error of the probe is what counts
	}
	switch {
	case err != nil:
		return err
	case f == pushRejected:
		return fault.New(fault.KindUnsupported, "%s refuses the fence ref: %s", t, oneLine(said.out+" "+s.describeOutput(said), 300)).
			WithHint("the host does not allow refs/sbx, so that a stop could not block publishing there; use --publish CMD")
	case f != pushAccepted:
		return s.remoteError("probe "+t.String(), said)
	}
	m, seeing := s.readFence(ctx, mark.Task)
	if err := s.deleteProbeRef(ctx, mark); err != nil {
		return err
	}
	if seeing == nil && m.Verdict == Absent {
		return fault.New(fault.KindUnsupported, "%s accepts a fence ref but does not show it", t).
			WithHint("the host hides refs/sbx from readers; use --publish CMD there")
	}
	return seeing
}

// deleteProbeRef deletes the ref of a probe, for up to dropGrace after ctx has ended.
func (s *scratch) deleteProbeRef(ctx context.Context, mark Mark) error {
	ctx, stop := withGrace(ctx, dropGrace)
	defer stop()
	marker, err := s.storeMark(ctx, mark)
	if err != nil {
		return err
	}
	f, said, err := s.pushAtomically(ctx, refUpdate{fenceRef(mark.Task), marker, ""})
	if err == nil && f != pushAccepted {
		err = fault.New(fault.KindUnsupported, "the ref %s of the probe could not be deleted: %s", fenceRef(mark.Task), s.describeOutput(said)).
			WithHint("delete it by hand; fence refs work there")
	}
	return err
}

// withGrace returns a context that ends d after ctx.
func withGrace(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		if poll.Sleep(last, d) == nil {
			stop()
		}
	})
	return last, func() {
		unhook()
		stop()
	}
}

// openChecked opens a scratch repository in the remote's object format, after it has
// checked git's version and the remote.
func (g *Git) openChecked(ctx context.Context, t Target) (*scratch, error) {
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	s, err := g.openScratch(ctx, t)
	if err != nil {
		return nil, err
	}
	seen, err := s.readRefs(ctx, t.branchRef(), "HEAD")
	for _, oid := range seen {
		if err == nil {
			err = s.matchFormat(ctx, oid)
		}
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (g *Git) checkVersion(ctx context.Context) error {
	p, err := g.runGit(ctx, gitCall{args: []string{"version"}})
	if err != nil {
		return err
	}
	if !newEnough(p.out) {
		return fault.Usage("git %s is too old to publish with", oneLine(p.out, 60)).
			WithHint("install git %d.%d or newer on this host", oldestMajor, oldestMinor)
	}
	return nil
}

func newEnough(version string) bool {
	found := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(version)
	if found == nil {
		return false
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	return major > oldestMajor || major == oldestMajor && minor >= oldestMinor
}

// Resolve replaces the name of a remote of the repository at dir by its push URL, and a
// relative folder by an absolute one, so that the stored target is independent of the
// folder.
func (g *Git) Resolve(ctx context.Context, t Target, dir string) (Target, error) {
	if err := t.checkTarget(); err != nil {
		return Target{}, err
	}
	if addressKindOf(t.Remote) != remoteName {
		t.Remote = absoluteFolder(t.Remote, dir)
		return t, nil
	}
	p, err := g.runGit(ctx, gitCall{dir: dir, args: []string{"remote", "get-url", "--push", "--", t.Remote}})
	if err != nil {
		return Target{}, err
	}
	address, _, _ := strings.Cut(p.out, "\n")
	if p.code != 0 || address == "" {
		return Target{}, fault.Usage("publish target: the repository here has no remote %q", t.Remote).
			WithHint("write ./%s for a folder, or a URL; git remote -v lists the remotes", t.Remote)
	}
	if addressKindOf(address) == remoteName {
		address = "./" + address // git takes a bare word for a folder
	}
	t.Remote = absoluteFolder(address, dir)
	return t, t.checkTarget()
}
