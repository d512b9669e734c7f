package publish

import (
	"bufio"
	"context"
	"crypto/sha1" //nolint:gosec // git's own checksum of a pack; it finds damage, it proves nothing
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"sbx/internal/fault"
)

// Bundle is the header of a git bundle: the commit it brings, and the commits that it
// requires and does not bring.
type Bundle struct {
	Head          string
	Prerequisites []string
}

// maxHeader bounds the header in bytes, maxPrerequisites the commits that a bundle may
// require. A bundle of one branch requires a few.
const (
	maxHeader        = 1 << 20
	maxPrerequisites = 1000
)

// CheckBundle reads the header of the bundle at path and compares the pack with its
// checksum, so that a truncated one is found first. The bundle comes from a sandbox:
// Publish checks its objects when it unpacks them. Errors are fault.KindRefused.
func CheckBundle(path string) (Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return Bundle{}, fault.New(fault.KindUnknown, "the bundle: %w", err)
	}
	defer f.Close()
	r := bufio.NewReader(f)
	b, err := readHeader(r)
	if err != nil {
		return Bundle{}, err
	}
	return b, checkPack(r, formatOf(b.Head))
}

func refuseBundle(why string, args ...any) *fault.Error {
	return fault.New(fault.KindRefused, "the bundle "+why, args...).
		WithHint("it must be the output of the collect command: git bundle create - HEAD")
}

// readHeader reads up to the empty line before the pack.
func readHeader(r *bufio.Reader) (Bundle, error) {
	h := bundleHeader{}
	for size := 0; ; {
		line, err := readLine(r, maxHeader-size)
		if size += len(line); err != nil {
			return Bundle{}, refuseBundle("has an incomplete header")
		}
		if line == "\n" {
			return h.toBundle()
		}
		if err := h.parseLine(strings.TrimSuffix(line, "\n")); err != nil {
			return Bundle{}, err
		}
	}
}

// bundleHeader collects the lines of a bundle's header.
type bundleHeader struct {
	version       string
	format        string
	refs          map[string]string
	prerequisites []string
}

func (h *bundleHeader) parseLine(line string) error {
	switch {
	case h.version == "":
		if line != "# v2 git bundle" && line != "# v3 git bundle" {
			return refuseBundle("is not a git bundle: it begins with %q", oneLine(line, 40))
		}
		h.version, h.format, h.refs = line, sha1Format, map[string]string{}
		return nil
	case strings.HasPrefix(line, "@"):
		format, ok := strings.CutPrefix(line, "@object-format=") // the other known capability leaves objects out
		if !ok || format != sha1Format && format != sha256Format {
			return refuseBundle("needs %q, which sbx does not support", oneLine(line, 40))
		}
		h.format = format
		return nil
	case strings.HasPrefix(line, "-"):
		oid, _, _ := strings.Cut(line[1:], " ")
		h.prerequisites = append(h.prerequisites, oid)
		if !isOID(oid) || len(h.prerequisites) > maxPrerequisites {
			return refuseBundle("depends on commits that it does not name, or on too many")
		}
		return nil
	}
	oid, name, _ := strings.Cut(line, " ")
	if !isOID(oid) || name != "HEAD" && refProblem(name) != "" || len(h.refs) >= maxPrerequisites {
		return refuseBundle("has a ref that git would not accept")
	}
	h.refs[name] = oid
	return nil
}

func (h *bundleHeader) toBundle() (Bundle, error) {
	head := h.refs["HEAD"]
	if head == "" && len(h.refs) == 1 {
		for _, head = range h.refs {
			break
		}
	}
	if head == "" {
		return Bundle{}, refuseBundle("has %d refs and none is HEAD", len(h.refs))
	}
	for _, oid := range append(slices.Clone(h.prerequisites), head) {
		if formatOf(oid) != h.format {
			return Bundle{}, refuseBundle("mixes two kinds of object names")
		}
	}
	return Bundle{Head: head, Prerequisites: h.prerequisites}, nil
}

// checkPack reads a pack to its end and compares its checksum, which stands at the end.
func checkPack(r io.Reader, format string) error {
	sum := sha1.New() //nolint:gosec // see the import
	if format == sha256Format {
		sum = sha256.New()
	}
	tail := &tailWriter{into: sum, keep: sum.Size()}
	n, err := io.Copy(tail, r)
	switch {
	case err != nil:
		return fault.New(fault.KindUnknown, "the bundle: %w", err)
	case n < int64(12+sum.Size()) || string(tail.first) != "PACK":
		return refuseBundle("has no pack")
	case string(sum.Sum(nil)) != string(tail.tail):
		return refuseBundle("is damaged or truncated: its checksum does not match its %d bytes", n)
	}
	return nil
}

// tailWriter forwards all but the last keep bytes written to it.
type tailWriter struct {
	into  io.Writer
	keep  int
	first []byte // the first four bytes
	tail  []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	if len(t.first) < 4 {
		t.first = append(t.first, p[:min(len(p), 4-len(t.first))]...)
	}
	t.tail = append(t.tail, p...)
	ready := max(0, len(t.tail)-t.keep)
	if _, err := t.into.Write(t.tail[:ready]); err != nil {
		return 0, err
	}
	t.tail = append(t.tail[:0], t.tail[ready:]...)
	return len(p), nil
}

// ErrTooBig reports that a bundle exceeds the limit of its file.
var ErrTooBig = errors.New("the bundle is larger than its limit")

// LimitFile is a file of limited size, because a sandbox writes to it. A Write that would
// exceed the limit writes nothing; it and all later ones fail with ErrTooBig inside
// fault.KindRefused.
type LimitFile struct {
	file  *os.File
	left  int64
	limit int64
	over  bool
}

// NewLimitFile creates the file at path, readable by its owner only; it must not exist.
func NewLimitFile(path string, limit int64) (*LimitFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fault.New(fault.KindUnknown, "the bundle: %w", err)
	}
	return &LimitFile{file: f, left: limit, limit: limit}, nil
}

func (l *LimitFile) Write(p []byte) (int, error) {
	if l.over = l.over || int64(len(p)) > l.left; l.over {
		return 0, l.tooBigError()
	}
	n, err := l.file.Write(p)
	l.left -= int64(n)
	return n, err
}

func (l *LimitFile) tooBigError() error {
	return fault.New(fault.KindRefused, "%w of %d bytes", ErrTooBig, l.limit).
		WithHint("publish less: collect with --base, or remove large files from the repository")
}

// Close closes the file. It fails too when a Write would have exceeded the limit.
func (l *LimitFile) Close() error {
	err := l.file.Close()
	if l.over {
		return l.tooBigError()
	}
	if err != nil {
		return fmt.Errorf("the bundle: %w", err)
	}
	return nil
}

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
		return refuseBundle("is incomplete: %s", s.describeOutput(p))
	}
	kind, err := s.runLocal(ctx, "", "cat-file", "-t", b.Head)
	if err == nil && strings.TrimSpace(kind) != "commit" {
		return refuseBundle("has a %s where a commit is needed", oneLine(kind, 20))
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
		return s.remoteError("fetch the commits that the work is based on", p)
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
		return s.remoteError("fetch the commits that the work is based on", p)
	}
	for _, oid := range wanted {
		has, err := s.git.runGit(ctx, gitCall{dir: s.dir, args: []string{"cat-file", "-e", oid + "^{commit}"}})
		if err != nil {
			return err
		}
		if has.code != 0 {
			return fault.Usage("the work is based on commit %s, which no branch of the remote has", oid).
				WithHint("push that commit first, or launch with --base on a commit that the remote has")
		}
	}
	return nil
}
