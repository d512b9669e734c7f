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
	// ErrNoCgroup says that no group can hold a sandbox here; the text lists the reason of
	// each kind of group.
	ErrNoCgroup = errors.New("no usable control group")
	// ErrExists says that a group with this id exists. It is never reused.
	ErrExists = errors.New("control group exists")
	// ErrName is wrapped for an id or owner that cannot be a directory name.
	ErrName = errors.New("not usable as the name of a control group")
)

// maxName limits ids and owners, in bytes; directory names are limited to 255.
const maxName = 100

func wellFormed(word string) bool {
	if word == "" || len(word) > maxName {
		return false
	}
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// Create makes a group for the sandbox id in the best way that works: memory of cgroup v2,
// else memory of v1 with membership of v2, else v1 alone. A failure removes what was made
// and tries the next way; the error is ErrNoCgroup with every reason, ErrExists, ErrName or
// ErrLimits.
//
// A requested memory limit is enforced or Create fails. Other limits that cannot be enforced
// are listed by Group.Missing.
func Create(h Host, id string, l Limits) (*Group, error) {
	if err := l.checkLimits(); err != nil {
		return nil, err
	}
	if !wellFormed(id) {
		return nil, fmt.Errorf("%w: id %q", ErrName, id)
	}
	if h.unified == nil && len(h.legacy) == 0 {
		return nil, fmt.Errorf("%w: none is mounted", ErrNoCgroup)
	}
	var why []string
	for _, p := range h.listPlans(l) {
		if p.err == nil {
			g, err := h.buildGroup(p, id, l)
			if err == nil || errors.Is(err, ErrExists) {
				return g, err
			}
			p.err = err
		}
		why = append(why, string(p.enforcement)+": "+p.err.Error())
	}
	return nil, fmt.Errorf("%w: %s", ErrNoCgroup, strings.Join(why, "; "))
}

// buildGroup carries out a plan completely or not at all.
func (h Host) buildGroup(p plan, id string, l Limits) (*Group, error) {
	g := newGroup(h.tree, State{ID: id, Enforcement: p.enforcement, Missing: p.missing})
	for _, s := range p.sites {
		d, err := h.makeDir(g, s, h.dirName(id))
		if err == nil {
			g.state.Dirs = append(g.state.Dirs, d)
			err = g.writeLimits(d, l)
		}
		if err != nil {
			for _, made := range slices.Backward(g.state.Dirs) {
				_ = h.tree.removeGroupDir(made.Path)
			}
			return nil, err
		}
	}
	return g, nil
}

// dirName is the name of the group's directories: ids contain no dot, so the owner before
// the dot is unambiguous.
func (h Host) dirName(id string) string {
	if h.owner == "" {
		return id
	}
	return h.owner + "." + id
}

// makeDir makes one directory. The holder `sbx` is shared: another process may remove it
// between the two steps, so they are retried.
func (h Host) makeDir(g *Group, s site, name string) (Dir, error) {
	holder := path.Join(s.base, holderName)
	d := Dir{V2: s.v2, Path: path.Join(holder, name)}
	var err error
	for range 5 {
		if err = h.openHolder(g, s, holder); err != nil {
			return d, err
		}
		if err = h.tree.makeGroupDir(d.Path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return d, fmt.Errorf("%w: %s", ErrExists, d.Path)
	}
	if err != nil {
		return d, err
	}
	if s.v2 { // the holder may be a new one; from now on it is not empty and stays
		err = h.enableControllers(g, holder, s.use)
	}
	d.Controllers = g.availableControllers(s.use)
	if err == nil {
		d.Inode, err = h.tree.inodeOfDir(d.Path)
	}
	if err != nil {
		_ = h.tree.removeGroupDir(d.Path)
	}
	return d, err
}

// openHolder makes the directory `sbx` and enables the v2 controllers in it, one by one, so
// that the refusal of one does not affect the others.
func (h Host) openHolder(g *Group, s site, holder string) error {
	if s.v2 {
		if err := h.enableControllers(g, s.base, s.use); err != nil {
			return err
		}
	}
	if err := h.tree.makeGroupDir(holder); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.v2 {
		if err := h.enableControllers(g, holder, s.use); err != nil && !noSuchGroup(err) {
			return err
		}
	}
	return nil
}

// enableControllers enables controllers for the children of a group. Without memory the plan
// fails; any other controller becomes a missing limit.
func (h Host) enableControllers(g *Group, dir string, controllers []string) error {
	control := path.Join(dir, "cgroup.subtree_control")
	on := h.readWords(control)
	for _, c := range controllers {
		if slices.Contains(on, c) {
			continue
		}
		err := h.tree.writeFile(control, "+"+c)
		if err != nil && c == "memory" {
			return err
		}
		if err != nil {
			g.addMissing(c, err)
		}
	}
	return nil
}

// writeLimits writes the limits of one directory.
func (g *Group) writeLimits(d Dir, l Limits) error {
	for _, c := range d.Controllers {
		for _, s := range l.controllerSettings(d.V2, c) {
			err := g.tree.writeFile(path.Join(d.Path, s.file), s.value)
			switch {
			case err == nil || s.ignorable:
			case s.required:
				return err
			default:
				g.addMissing(s.limit, err)
			}
		}
	}
	return nil
}

// addMissing records a limit that is not enforced, once.
func (g *Group) addMissing(limit string, err error) {
	if !isMissing(g.state.Missing, limit) {
		g.state.Missing = append(g.state.Missing, Missing{limit, err.Error()})
	}
}

// availableControllers leaves out the controllers that could not be enabled.
func (g *Group) availableControllers(use []string) []string {
	var list []string
	for _, c := range use {
		if !isMissing(g.state.Missing, c) {
			list = append(list, c)
		}
	}
	return list
}

// isBusy reports whether the kernel refuses temporarily.
func isBusy(err error) bool {
	return errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.ENOTEMPTY)
}
