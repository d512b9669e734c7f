package publish

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

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
			WithHint("the host keeps refs/sbx closed, so no stop could hold a publish there; use --publish CMD")
	case f != pushAccepted:
		return s.remoteError("probe "+t.String(), said)
	}
	m, seeing := s.readFence(ctx, mark.Task)
	if err := s.deleteProbeRef(ctx, mark); err != nil {
		return err
	}
	if seeing == nil && m.Verdict == Absent {
		return fault.New(fault.KindUnsupported, "%s takes a fence ref and does not show it", t).
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
		err = fault.New(fault.KindUnsupported, "the ref %s of the probe could not be deleted again: %s", fenceRef(mark.Task), s.describeOutput(said)).
			WithHint("delete it by hand; fence refs work there, and stay")
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
			WithHint("write ./%s for a folder, or a URL; git remote -v lists what there is", t.Remote)
	}
	if addressKindOf(address) == remoteName {
		address = "./" + address // git takes a bare word for a folder
	}
	t.Remote = absoluteFolder(address, dir)
	return t, t.checkTarget()
}
