package publish

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
)

// oldest is the first git that takes settings through the environment and pushes
// atomically over http: 2.31.
const (
	oldestMajor = 2
	oldestMinor = 31
)

// dropGrace is how long the ref of a probe may still be deleted when who asked for
// the probe waits no more.
const dropGrace = 10 * time.Second

// Probe says early whether a publish could work: git is there and new enough, and
// the remote takes atomic pushes with these credentials. It proves on the remote
// itself that a fence ref can be created, seen and deleted there, with a ref of its
// own that is gone afterwards, also when ctx ends in between: it then asks for that
// for up to dropGrace longer.
func (g *Git) Probe(ctx context.Context, t Target) error {
	s, err := g.ready(ctx, t)
	if err != nil {
		return err
	}
	defer s.close()
	mark := s.probe()
	f, said, err := s.create(ctx, mark)
	if f == open {
		_ = s.drop(ctx, mark) // it may be there; that the probe failed is what counts
	}
	if err != nil {
		return err
	}
	if f != taken {
		return s.closed(t, f, said)
	}
	m, seeing := s.look(ctx, mark.Task)
	if err := s.drop(ctx, mark); err != nil {
		return err
	}
	if seeing == nil && m.Verdict == Absent {
		return fault.New(fault.KindUnsupported, "%s takes a fence ref and does not show it", t).
			WithHint("the host hides refs/sbx from readers; use --publish CMD there")
	}
	return seeing
}

func (s *scratch) probe() Mark {
	return Mark{Verdict: Stopped, Task: "probe" + strings.TrimPrefix(filepath.Base(s.dir), "sbx-publish"), By: "probe", At: s.git.now()}
}

// closed says why a probe's ref was not created.
func (s *scratch) closed(t Target, f fate, said printed) error {
	if f != rejected {
		return s.failed("probe "+t.String(), said)
	}
	return fault.New(fault.KindUnsupported, "%s refuses the fence ref: %s", t, oneLine(said.out+" "+s.said(said), 300)).
		WithHint("the host keeps refs/sbx closed, so no stop could hold a publish there; use --publish CMD")
}

// drop deletes the ref of a probe, for up to dropGrace after ctx has ended.
func (s *scratch) drop(ctx context.Context, mark Mark) error {
	ctx, stop := outlasting(ctx, dropGrace)
	defer stop()
	marker, err := s.write(ctx, mark)
	if err != nil {
		return err
	}
	f, said, err := s.push(ctx, update{fenceRef(mark.Task), marker, ""})
	if err == nil && f != taken {
		err = fault.New(fault.KindUnsupported, "the ref %s of the probe could not be deleted again: %s", fenceRef(mark.Task), s.said(said)).
			WithHint("delete it by hand; fence refs work there, and stay")
	}
	return err
}

// outlasting gives a context that ends when ctx has ended for d.
func outlasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			stop()
		case <-last.Done():
		}
	})
	return last, func() {
		unhook()
		stop()
	}
}

// ready opens a scratch repository in the remote's format after git's version
// and the remote were asked.
func (g *Git) ready(ctx context.Context, t Target) (*scratch, error) {
	if err := g.version(ctx); err != nil {
		return nil, err
	}
	s, err := g.open(ctx, t)
	if err != nil {
		return nil, err
	}
	seen, err := s.refs(ctx, t.ref(), "HEAD")
	for _, oid := range seen {
		if err == nil {
			err = s.adopt(ctx, oid)
		}
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (g *Git) version(ctx context.Context) error {
	p, err := g.run(ctx, call{args: []string{"version"}})
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

// Resolve turns the name of a remote of the repository at dir into its push URL,
// and a relative folder into an absolute one: what is stored then means the same
// in another folder.
func (g *Git) Resolve(ctx context.Context, t Target, dir string) (Target, error) {
	if err := t.valid(); err != nil {
		return Target{}, err
	}
	if placeOf(t.Remote) != named {
		t.Remote = absolute(t.Remote, dir)
		return t, nil
	}
	p, err := g.run(ctx, call{dir: dir, args: []string{"remote", "get-url", "--push", "--", t.Remote}})
	if err != nil {
		return Target{}, err
	}
	address, _, _ := strings.Cut(p.out, "\n")
	if p.code != 0 || address == "" {
		return Target{}, fault.Usage("publish target: the repository here has no remote %q", t.Remote).
			WithHint("write ./%s for a folder, or a URL; git remote -v lists what there is", t.Remote)
	}
	if placeOf(address) == named {
		address = "./" + address // git takes a bare word as a folder
	}
	t.Remote = absolute(address, dir)
	return t, t.valid()
}
