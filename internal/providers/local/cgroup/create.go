package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

var (
	// ErrNoCgroup says that no group can hold a sandbox here; the text lists
	// why each way is closed.
	ErrNoCgroup = errors.New("no usable control group")
	// ErrExists says that a group of this id is there already. It is never
	// taken over.
	ErrExists = errors.New("control group exists")
	// ErrName is what an id or owner that cannot be a directory wraps.
	ErrName = errors.New("not usable as the name of a control group")
)

// maxName bounds ids and owners, in bytes; directory names end at 255.
const maxName = 100

func wellFormed(word string) bool {
	if word == "" || len(word) > maxName {
		return false
	}
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// Create makes a group for the sandbox id in the best way that works: memory
// from cgroup v2, else memory from v1 beside membership from v2, else v1 alone.
// A failure on the way removes what was made and tries the next way; the error
// is ErrNoCgroup with every reason, ErrExists, ErrName or ErrLimits.
//
// A memory limit that was asked for holds or Create fails. Limits of another
// kind that cannot be enforced are listed by Group.Missing.
func Create(h Host, id string, l Limits) (*Group, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if !wellFormed(id) {
		return nil, fmt.Errorf("%w: id %q", ErrName, id)
	}
	if h.Mode == ModeNone {
		return nil, fmt.Errorf("%w: none is mounted", ErrNoCgroup)
	}
	var why []string
	for _, p := range h.plans(l) {
		if p.err == nil {
			g, err := h.build(p, id, l)
			if err == nil || errors.Is(err, ErrExists) {
				return g, err
			}
			p.err = err
		}
		why = append(why, string(p.enforcement)+": "+p.err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrNoCgroup, strings.Join(why, "; "))
}

// build carries out a plan, whole or not at all.
func (h Host) build(p plan, id string, l Limits) (*Group, error) {
	g := newGroup(h.tree, State{ID: id, Enforcement: p.enforcement, Missing: p.missing})
	for _, s := range p.sites {
		d, err := h.makeDir(g, s, h.directory(id))
		if err == nil {
			g.state.Dirs = append(g.state.Dirs, d)
			err = g.limit(d, l)
		}
		if err != nil {
			g.undo()
			return nil, err
		}
	}
	return g, nil
}

// directory is the name of the group's directories: ids hold no dot, so the
// owner before it is unambiguous.
func (h Host) directory(id string) string {
	if h.owner == "" {
		return id
	}
	return h.owner + "." + id
}

// makeDir makes one directory. The holder `sbx` is shared: another process may
// tidy it away between the two steps, so they are tried again.
func (h Host) makeDir(g *Group, s site, name string) (Dir, error) {
	holder := path.Join(s.base, top)
	d := Dir{V2: s.v2, Path: path.Join(holder, name)}
	var err error
	for range 5 {
		if err = h.openHolder(g, s, holder); err != nil {
			return d, err
		}
		if err = h.tree.mkdir(d.Path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return d, fmt.Errorf("%w: %s", ErrExists, d.Path)
	}
	if err != nil {
		return d, err
	}
	if s.v2 { // in a holder that somebody has just made anew; from now on it stays
		err = h.handDown(g, holder, s.use)
	}
	d.Controllers = g.kept(s.use)
	if err == nil {
		d.Inode, err = h.tree.inode(d.Path)
	}
	if err != nil {
		_ = h.tree.rmdir(d.Path)
	}
	return d, err
}

// openHolder makes the directory `sbx` and hands the controllers of v2 down
// through it, one by one, so that a refused one spoils no other.
func (h Host) openHolder(g *Group, s site, holder string) error {
	if s.v2 {
		if err := h.handDown(g, s.base, s.use); err != nil {
			return err
		}
	}
	if err := h.tree.mkdir(holder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.v2 {
		if err := h.handDown(g, holder, s.use); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// handDown enables controllers for the children of a group. Without memory the
// plan fails; any other controller becomes a missing limit.
func (h Host) handDown(g *Group, dir string, controllers []string) error {
	control := path.Join(dir, "cgroup.subtree_control")
	on := h.words(control)
	for _, c := range controllers {
		if slices.Contains(on, c) {
			continue
		}
		err := h.tree.write(control, "+"+c)
		if err != nil && c == "memory" {
			return err
		}
		if err != nil {
			g.miss(c, err)
		}
	}
	return nil
}

// limit writes the limits of one directory.
func (g *Group) limit(d Dir, l Limits) error {
	for _, c := range d.Controllers {
		for _, s := range l.settings(d.V2, c) {
			err := g.tree.write(path.Join(d.Path, s.file), s.value)
			switch {
			case err == nil || s.ignorable:
			case s.required:
				return err
			default:
				g.miss(s.limit, err)
			}
		}
	}
	return nil
}

// miss records a limit that is not enforced, once.
func (g *Group) miss(limit string, err error) {
	if !slices.ContainsFunc(g.state.Missing, func(m Missing) bool { return m.Limit == limit }) {
		g.state.Missing = append(g.state.Missing, Missing{limit, err.Error()})
	}
}

// kept drops the controllers that could not be handed down.
func (g *Group) kept(use []string) []string {
	var list []string
	for _, c := range use {
		if !slices.ContainsFunc(g.state.Missing, func(m Missing) bool { return m.Limit == c }) {
			list = append(list, c)
		}
	}
	return list
}

// undo removes what a failed build has made.
func (g *Group) undo() {
	for _, d := range slices.Backward(g.state.Dirs) {
		_ = g.tree.rmdir(d.Path)
	}
}

// busy says that the kernel refuses for now.
func busy(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)
}
