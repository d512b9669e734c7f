package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"sbx/internal/poll"
	"sbx/internal/sandbox"
)

// ErrBusy says that a group or one below it still has processes.
var ErrBusy = errors.New("control group is in use")

// removeWithin limits the retries of Remove: a killed process keeps its group busy for some
// milliseconds after it has left the list.
const removeWithin = 500 * time.Millisecond

// Remove removes the directories of the group, and empty groups that the program made below
// them, together with the counters. The kernel refuses to remove a group with processes:
// ErrBusy. Directories that no longer exist, or were replaced by a foreign one, are skipped.
func (g *Group) Remove() error {
	_ = g.Close()
	var failed error
	for _, d := range slices.Backward(g.state.Dirs) {
		if d.Borrowed {
			continue
		}
		if err := g.removeOne(d); err != nil {
			failed = err
		}
	}
	return failed
}

func (g *Group) removeOne(d Dir) error {
	deadline := time.Now().Add(removeWithin)
	for pauses := poll.NewBackoff(firstPause, lastPause); ; {
		if inode, err := g.tree.inodeOfDir(d.Path); noSuchGroup(err) || (err == nil && inode != d.Inode) {
			return nil
		}
		g.pruneBelow(d.Path, maxDepth)
		err := g.tree.removeGroupDir(d.Path)
		switch {
		case err == nil || noSuchGroup(err):
			return nil
		case !isBusy(err):
			return fmt.Errorf("remove control group: %w", err)
		case time.Now().After(deadline):
			return fmt.Errorf("%w: %s", ErrBusy, d.Path)
		}
		<-pauses.After()
	}
}

// pruneBelow removes empty groups below a directory; the kernel refuses the others.
func (g *Group) pruneBelow(dir string, depth int) {
	if depth == 0 {
		return
	}
	below, err := g.tree.childDirs(dir)
	if err != nil {
		return
	}
	for _, name := range below {
		child := path.Join(dir, name)
		g.pruneBelow(child, depth-1)
		_ = g.tree.removeGroupDir(child)
	}
}

// holder is a directory `sbx` with its hierarchy.
type holder struct {
	hierarchy
	path string
}

// listHolders lists the possible directories `sbx` of this host.
func (h Host) listHolders() []holder {
	var list []holder
	trees := slices.Clone(h.legacy)
	if h.unified != nil {
		trees = append([]hierarchy{*h.unified}, trees...)
	}
	for _, hi := range trees {
		for _, base := range h.candidateBases(hi) {
			list = append(list, holder{hi, path.Join(base, holderName)})
		}
	}
	return list
}

// Orphans lists the groups of this host's owner that known does not contain, by id: what a
// dead supervisor left. Each state is for Reopen, Kill and Remove. Groups outside the
// directories named `sbx`, and those of another owner, are never listed.
//
// A group is made after its record is written and removed before the record is: known must
// be true throughout, or a sandbox that is starting counts as an orphan.
func Orphans(h Host, known func(id string) bool) ([]State, error) {
	found := map[string]*State{}
	for _, ho := range h.listHolders() {
		names, err := h.tree.childDirs(ho.path)
		if noSuchGroup(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			owner, id := splitName(name)
			if owner != h.owner || !wellFormed(id) || known(id) {
				continue
			}
			h.addOrphanDir(found, id, ho, path.Join(ho.path, name))
		}
	}
	var list []State
	for _, id := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[id])
	}
	return list, nil
}

// addOrphanDir adds a directory to the state of its id.
func (h Host) addOrphanDir(found map[string]*State, id string, ho holder, dir string) {
	inode, err := h.tree.inodeOfDir(dir)
	if err != nil {
		return // it was removed meanwhile
	}
	s := found[id]
	if s == nil {
		s = &State{ID: id, Enforcement: sandbox.EnforcementCgroup1}
		found[id] = s
	}
	controllers := slices.Clone(ho.controllers)
	if ho.v2 {
		controllers = h.readWords(path.Join(dir, "cgroup.controllers"))
	}
	s.Dirs = append(s.Dirs, Dir{V2: ho.v2, Controllers: controllers, Path: dir, Inode: inode})
	s.Enforcement = enforcementOf(s.Dirs)
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
