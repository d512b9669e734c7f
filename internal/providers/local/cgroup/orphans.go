package cgroup

import (
	"maps"
	"path"
	"slices"

	"sbx/internal/sandbox"
)

// Orphans lists the groups of this host's owner that nobody knows, by id: what
// a dead supervisor left behind. Each state goes to Reopen, Kill and Remove.
// Nothing outside the directories named `sbx`, and no group of another owner,
// is ever listed.
//
// A group is made after its record is written and removed before the record is:
// known must say true from the first of these moments to the last, or a sandbox
// that is just starting counts as an orphan.
func Orphans(h Host, known func(id string) bool) ([]State, error) {
	found := map[string]*State{}
	for _, ho := range h.holders() {
		names, err := h.tree.children(ho.path)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			owner, id := ownName(name)
			if owner != h.owner || !wellFormed(id) || known(id) {
				continue
			}
			h.collect(found, id, ho, path.Join(ho.path, name))
		}
	}
	var list []State
	for _, id := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[id])
	}
	return list, nil
}

// collect adds a directory to the state of its id.
func (h Host) collect(found map[string]*State, id string, ho holder, dir string) {
	inode, err := h.tree.inode(dir)
	if err != nil {
		return // removed in this moment
	}
	s := found[id]
	if s == nil {
		s = &State{ID: id, Enforcement: sandbox.EnforcementCgroup1}
		found[id] = s
	}
	s.Dirs = append(s.Dirs, Dir{V2: ho.v2, Controllers: h.serves(ho, dir), Path: dir, Inode: inode})
	s.Enforcement = enforcementOf(s.Dirs)
}

// serves lists the controllers that a directory has.
func (h Host) serves(ho holder, dir string) []string {
	if ho.v2 {
		return h.words(path.Join(dir, "cgroup.controllers"))
	}
	return slices.Clone(ho.controllers)
}

func enforcementOf(dirs []Dir) sandbox.Enforcement {
	v2 := slices.ContainsFunc(dirs, func(d Dir) bool { return d.V2 })
	memory2 := slices.ContainsFunc(dirs, func(d Dir) bool { return d.V2 && slices.Contains(d.Controllers, "memory") })
	memory1 := slices.ContainsFunc(dirs, func(d Dir) bool { return !d.V2 && slices.Contains(d.Controllers, "memory") })
	switch {
	case memory2:
		return sandbox.EnforcementCgroup2
	case v2 && memory1:
		return sandbox.EnforcementHybrid
	case memory1:
		return sandbox.EnforcementCgroup1
	}
	return sandbox.EnforcementNone
}
