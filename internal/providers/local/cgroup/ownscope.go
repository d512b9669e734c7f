package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"sbx/internal/sandbox"
)

// ErrNoScope says that the process is not inside a scope made by ScopeArgs.
var ErrNoScope = errors.New("not inside a systemd scope of this sandbox")

// OwnScope is the group of a sandbox whose supervisor runs inside the scope of
// ScopeArgs. The program gets a child group, for membership, kill and freeze;
// limits and memory counters stay with the scope, which nobody is moved out of
// and which systemd removes.
func OwnScope(h Host, id string) (*Group, error) {
	if !wellFormed(id) {
		return nil, fmt.Errorf("%w: id %q", ErrName, id)
	}
	if h.unified == nil || path.Base(h.unified.own) != unitName(id)+".scope" {
		return nil, fmt.Errorf("%w: %s", ErrNoScope, id)
	}
	scope := h.unified.own
	use := h.words(path.Join(scope, "cgroup.controllers"))
	if !slices.Contains(use, "memory") {
		return nil, fmt.Errorf("%w: %s has no memory controller", ErrNoCgroup, scope)
	}
	child := path.Join(scope, scopeChild)
	if err := h.tree.mkdir(child); errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s", ErrExists, child)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	g := newGroup(h.tree, State{ID: id, Enforcement: sandbox.EnforcementScope})
	for _, d := range []Dir{{V2: true, Path: child}, {V2: true, Path: scope, Controllers: use, Borrowed: true}} {
		inode, err := h.tree.inode(d.Path)
		if err != nil {
			_ = h.tree.rmdir(child)
			return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
		}
		d.Inode = inode
		g.state.Dirs = append(g.state.Dirs, d)
	}
	return g, nil
}
