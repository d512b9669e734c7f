package cgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/poll"
	"sbx/internal/sandbox"
)

// State is a group as data, stored in the record of a sandbox, so that another process can
// open the same group with Reopen.
type State struct {
	Enforcement sandbox.Enforcement `json:"enforcement"`
	ID          string              `json:"id"`
	Dirs        []Dir               `json:"dirs"`
	Missing     []Missing           `json:"missing,omitempty"`
}

// Dir is one directory of a group.
type Dir struct {
	V2          bool     `json:"v2"`
	Controllers []string `json:"controllers"` // those that the sandbox uses in this directory
	Path        string   `json:"path"`
	Inode       uint64   `json:"inode"` // distinguishes it from a later directory of the same name
	// Borrowed directories have limits and counters and belong to another program: no
	// process is killed in them and they are never removed.
	Borrowed bool `json:"borrowed,omitempty"`
}

// Lost is a recorded directory that is not used anymore.
type Lost struct {
	Path   string
	Reason string // "missing" or "foreign"
}

// ErrState is wrapped for a recorded state that this package never wrote.
var ErrState = errors.New("not the state of a control group")

// Group is the group of one sandbox. It is safe for concurrent use; JoinThread concerns the
// calling thread.
type Group struct {
	state State
	lost  []Lost
	tree  tree
	proc  string

	mu sync.Mutex
	fd int // of the v2 directory; -1 = not open
}

func newGroup(t tree, s State) *Group {
	return &Group{state: s, tree: t, proc: "/proc", fd: -1}
}

// Reopen opens a group again. Directories that no longer exist, or whose inode differs from
// the record, are listed by Lost and not used; a group without directories is empty, not an
// error. The error is ErrState for a record with a path outside of the groups of sbx.
func Reopen(s State) (*Group, error) { return reopenGroup(disk{}, s) }

func reopenGroup(t tree, s State) (*Group, error) {
	g := newGroup(t, s)
	g.state.Dirs = nil
	for _, d := range s.Dirs {
		if err := d.checkDirPath(s.ID); err != nil {
			return nil, err
		}
		switch inode, err := t.inodeOfDir(d.Path); {
		case noSuchGroup(err):
			g.lost = append(g.lost, Lost{d.Path, "missing"})
		case err != nil:
			return nil, fmt.Errorf("reopen control group: %w", err)
		case inode != d.Inode:
			g.lost = append(g.lost, Lost{d.Path, "foreign"})
		default:
			g.state.Dirs = append(g.state.Dirs, d)
		}
	}
	return g, nil
}

// checkDirPath refuses a path that Create and OwnScope never make, so that a damaged record
// cannot direct a kill to another program's group.
func (d Dir) checkDirPath(id string) error {
	name, holder := path.Base(d.Path), path.Dir(d.Path)
	owner, _, owned := strings.Cut(name, ".")
	ours := path.Base(holder) == holderName && isValidName(id) && (name == id || (owned && isValidName(owner) && name == owner+"."+id))
	scope := unitName(id) + ".scope"
	inScope := isValidName(id) && d.V2 && name == scopeChild && path.Base(holder) == scope
	lent := isValidName(id) && d.Borrowed && name == scope
	if !path.IsAbs(d.Path) || path.Clean(d.Path) != d.Path || (!ours && !inScope && !lent) {
		return fmt.Errorf("%w: %q for id %q", ErrState, d.Path, id)
	}
	return nil
}

// State returns the group as data.
func (g *Group) State() State {
	s := g.state
	s.Dirs, s.Missing = slices.Clone(s.Dirs), slices.Clone(s.Missing)
	return s
}

// Enforcement says what enforces the memory limit.
func (g *Group) Enforcement() sandbox.Enforcement { return g.state.Enforcement }

// Missing lists the requested limits that are not enforced.
func (g *Group) Missing() []Missing { return slices.Clone(g.state.Missing) }

// Lost lists the recorded directories that Reopen did not accept.
func (g *Group) Lost() []Lost { return slices.Clone(g.lost) }

// Paths lists the directories of the group.
func (g *Group) Paths() []string {
	var list []string
	for _, d := range g.state.Dirs {
		list = append(list, d.Path)
	}
	return list
}

// FD is a descriptor of the v2 directory for SysProcAttr.CgroupFD, so that a program starts
// inside; -1 when the group has no v2 directory or it cannot be opened. It is closed on exec
// and by Close.
func (g *Group) FD() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d, ok := g.unifiedDir(); ok && g.fd < 0 {
		if fd, err := openDir(d.Path); err == nil {
			g.fd = fd
		}
	}
	return g.fd
}

// Close closes the descriptor; the group itself stays.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd < 0 {
		return nil
	}
	fd := g.fd
	g.fd = -1
	return closeDir(fd)
}

// unifiedDir finds the v2 directory that holds the members.
func (g *Group) unifiedDir() (Dir, bool) {
	for _, d := range g.state.Dirs {
		if d.V2 && !d.Borrowed {
			return d, true
		}
	}
	return Dir{}, false
}

func (g *Group) dirWith(controller string) (Dir, bool) {
	for _, d := range g.state.Dirs {
		if slices.Contains(d.Controllers, controller) {
			return d, true
		}
	}
	return Dir{}, false
}

// ReopenRecorded is Reopen for a state in a sandbox's record. An empty one is ErrState: that
// sandbox has no group.
func ReopenRecorded(raw json.RawMessage) (*Group, error) {
	var s State
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return Reopen(s)
}

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
			if owner != h.owner || !isValidName(id) || known(id) {
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
