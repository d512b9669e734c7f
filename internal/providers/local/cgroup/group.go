package cgroup

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"sbx/internal/sandbox"
)

// State is a group as data: what one process writes into the record of a
// sandbox, so that another finds the same group again with Reopen.
type State struct {
	Enforcement sandbox.Enforcement `json:"enforcement"`
	ID          string              `json:"id"`
	Dirs        []Dir               `json:"dirs"`
	Missing     []Missing           `json:"missing,omitempty"`
}

// Dir is one directory of a group.
type Dir struct {
	V2          bool     `json:"v2"`
	Controllers []string `json:"controllers"` // those the sandbox uses from here
	Path        string   `json:"path"`
	Inode       uint64   `json:"inode"` // tells it from a later directory of the same name
	// Borrowed directories carry limits and counters and belong to somebody
	// else: nothing is killed in them and they are never removed.
	Borrowed bool `json:"borrowed,omitempty"`
}

// Lost is a recorded directory that is not used any more.
type Lost struct {
	Path   string
	Reason string // "missing" or "foreign"
}

// ErrState is what a recorded state that was never written by this room wraps.
var ErrState = errors.New("not the state of a control group")

// Group is the group of one sandbox. Its methods may be called from several
// goroutines; JoinThread and LeaveThread speak about the calling thread.
type Group struct {
	state State
	lost  []Lost
	tree  tree
	proc  string

	mu    sync.Mutex
	fd    int // of the v2 directory; -1 = not open
	homes map[int][]string
}

func newGroup(t tree, s State) *Group {
	return &Group{state: s, tree: t, proc: "/proc", fd: -1, homes: map[int][]string{}}
}

// Reopen finds a group again. Directories that are gone, or whose inode differs
// from the record, are listed by Lost and left alone; a group without any is
// empty, not an error. The error is ErrState for a record that points anywhere
// but into groups of sbx.
func Reopen(s State) (*Group, error) { return reopen(disk{}, s) }

func reopen(t tree, s State) (*Group, error) {
	g := newGroup(t, s)
	g.state.Dirs = nil
	for _, d := range s.Dirs {
		if err := d.check(s.ID); err != nil {
			return nil, err
		}
		switch inode, err := t.inode(d.Path); {
		case gone(err):
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

// check refuses a path that Create and OwnScope never make, so that a damaged
// record cannot aim a kill at somebody else's group.
func (d Dir) check(id string) error {
	name, holder := path.Base(d.Path), path.Dir(d.Path)
	owner, _, owned := strings.Cut(name, ".")
	ours := path.Base(holder) == top && wellFormed(id) && (name == id || (owned && wellFormed(owner) && name == owner+"."+id))
	scope := unitName(id) + ".scope"
	inScope := wellFormed(id) && d.V2 && name == scopeChild && path.Base(holder) == scope
	lent := wellFormed(id) && d.Borrowed && name == scope
	if !path.IsAbs(d.Path) || path.Clean(d.Path) != d.Path || (!ours && !inScope && !lent) {
		return fmt.Errorf("%w: %q for id %q", ErrState, d.Path, id)
	}
	return nil
}

// State gives the group as data.
func (g *Group) State() State {
	s := g.state
	s.Dirs, s.Missing = slices.Clone(s.Dirs), slices.Clone(s.Missing)
	return s
}

// Enforcement says what holds the memory limit.
func (g *Group) Enforcement() sandbox.Enforcement { return g.state.Enforcement }

// Missing lists the limits that were asked for and are not enforced.
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

// FD is a descriptor of the v2 directory for SysProcAttr.CgroupFD, so that a
// program is born inside; -1 when the group has no v2 directory or it cannot be
// opened. It is closed on exec and by Close.
func (g *Group) FD() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d, ok := g.unified(); ok && g.fd < 0 {
		if fd, err := openDir(d.Path); err == nil {
			g.fd = fd
		}
	}
	return g.fd
}

// Close lets go of the descriptor; the group itself stays.
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

// unified finds the v2 directory that holds the members.
func (g *Group) unified() (Dir, bool) {
	for _, d := range g.state.Dirs {
		if d.V2 && !d.Borrowed {
			return d, true
		}
	}
	return Dir{}, false
}

// with finds the directory that serves a controller.
func (g *Group) with(controller string) (Dir, bool) {
	for _, d := range g.state.Dirs {
		if slices.Contains(d.Controllers, controller) {
			return d, true
		}
	}
	return Dir{}, false
}

// file reads one file of a directory of the group.
func (g *Group) file(d Dir, name string) (string, error) {
	return g.tree.read(path.Join(d.Path, name))
}
