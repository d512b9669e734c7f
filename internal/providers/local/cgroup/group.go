package cgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

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
		if err := d.checkPath(s.ID); err != nil {
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

// checkPath refuses a path that Create and OwnScope never make, so that a damaged record
// cannot direct a kill to another program's group.
func (d Dir) checkPath(id string) error {
	name, holder := path.Base(d.Path), path.Dir(d.Path)
	owner, _, owned := strings.Cut(name, ".")
	ours := path.Base(holder) == holderName && wellFormed(id) && (name == id || (owned && wellFormed(owner) && name == owner+"."+id))
	scope := unitName(id) + ".scope"
	inScope := wellFormed(id) && d.V2 && name == scopeChild && path.Base(holder) == scope
	lent := wellFormed(id) && d.Borrowed && name == scope
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

// dirWith finds the directory that has a controller.
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
