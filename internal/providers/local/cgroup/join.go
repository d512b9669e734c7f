package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
)

// ErrStranded says that a thread could not be put back. The caller lets its
// goroutine end while locked to it: the runtime then ends the thread.
var ErrStranded = errors.New("the thread stays in the control group")

// ErrMainThread says that the calling thread is the first of its process. The
// kernel charges a process's memory to the groups of that one and counts the
// process as a member with it, and the runtime can never end it.
var ErrMainThread = errors.New("the first thread of a process must not join a control group")

// JoinThread moves the calling thread into the v1 directories of the group, so
// that a program forked from it is charged from its first byte. The caller has
// called runtime.LockOSThread, starts the program from this goroutine (with FD
// as its SysProcAttr.CgroupFD where that is not negative) and calls LeaveThread.
// On an error the thread is back where it was, or the error wraps ErrStranded.
// The first thread is refused with ErrMainThread: a caller that keeps it locked
// from its start never meets that.
//
// A group with a v2 directory alone needs no join; JoinThread then makes sure
// that the directory is there, for FD cannot say so and a program without it
// would be born outside.
func (g *Group) JoinThread() error {
	if d, ok := g.unified(); ok {
		if _, err := g.tree.inode(d.Path); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	homes, err := g.whereabouts()
	if err != nil {
		return err
	}
	var left []string
	if len(homes) > 0 && threadID() == os.Getpid() {
		return ErrMainThread
	}
	for i, d := range g.legacy() {
		if err := g.tree.write(path.Join(d.Path, "tasks"), "0"); err != nil {
			return errors.Join(fmt.Errorf("join control group: %w", err), g.moveBack(left))
		}
		left = append(left, homes[i])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.homes[threadID()] = left
	return nil
}

// LeaveThread puts the calling thread back where JoinThread found it. Without a
// join it does nothing. The error wraps ErrStranded.
func (g *Group) LeaveThread() error {
	g.mu.Lock()
	homes := g.homes[threadID()]
	delete(g.homes, threadID())
	g.mu.Unlock()
	return g.moveBack(homes)
}

// Add moves a whole process into the group: for kernels and callers that
// cannot have it born inside. What it used before stays charged elsewhere.
func (g *Group) Add(pid int) error {
	for _, d := range g.state.Dirs {
		if d.Borrowed {
			continue
		}
		if err := g.tree.write(path.Join(d.Path, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	return nil
}

// legacy lists the v1 directories.
func (g *Group) legacy() []Dir {
	var list []Dir
	for _, d := range g.state.Dirs {
		if !d.V2 {
			list = append(list, d)
		}
	}
	return list
}

// whereabouts lists the directories that the calling thread is in, one for each
// of legacy.
func (g *Group) whereabouts() ([]string, error) {
	dirs := g.legacy()
	if len(dirs) == 0 {
		return nil, nil
	}
	self := path.Join(g.proc, "thread-self")
	mounts, err := g.tree.read(path.Join(self, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("join control group: %w", err)
	}
	groups, err := g.tree.read(path.Join(self, "cgroup"))
	if err != nil {
		return nil, fmt.Errorf("join control group: %w", err)
	}
	var h Host
	h.tree = g.tree
	h.find(parseMounts(mounts), parseMembership(groups))
	var homes []string
	for _, d := range dirs {
		var home string
		if hi := h.bound(d.Controllers[0]); hi != nil {
			home = hi.own
		}
		homes = append(homes, home)
	}
	return homes, nil
}

// moveBack moves the calling thread into each of the directories.
func (g *Group) moveBack(homes []string) error {
	var failed error
	for _, home := range homes {
		if home == "" {
			failed = fmt.Errorf("%w: its former group is not visible", ErrStranded)
			continue
		}
		if err := g.tree.write(path.Join(home, "tasks"), "0"); err != nil {
			failed = fmt.Errorf("%w: %w", ErrStranded, err)
		}
	}
	return failed
}
