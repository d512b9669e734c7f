package cgroup

import (
	"errors"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxDepth bounds the walk through groups that a program made below its own.
const maxDepth = 16

// batch is how many processes are held open at a time while they are signalled.
const batch = 64

// PIDs lists the processes of the group, rising, also those in groups that the
// program made below its own. A process that only sent a thread in (JoinThread)
// is not one of them. A removed group has none.
func (g *Group) PIDs() ([]int, error) {
	var all []int
	for _, d := range g.state.Dirs {
		if d.Borrowed {
			continue
		}
		pids, err := g.within(d, d.Path, maxDepth)
		if err != nil {
			return nil, err
		}
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Empty says that no process is left. A removed group is empty.
func (g *Group) Empty() (bool, error) {
	pids, err := g.PIDs()
	return err == nil && len(pids) == 0, err
}

// within lists the processes of one directory and those below it.
func (g *Group) within(d Dir, dir string, depth int) ([]int, error) {
	text, err := g.tree.read(path.Join(dir, "cgroup.procs"))
	switch {
	case gone(err):
		return nil, nil
	case err != nil && !errors.Is(err, syscall.EOPNOTSUPP): // a threaded group: its processes are listed above it
		return nil, err
	}
	pids := parsePIDs(text)
	if !d.V2 && len(pids) > 0 {
		if pids, err = g.withoutGuests(dir, pids); err != nil {
			return nil, err
		}
	}
	if depth == 0 {
		return pids, nil
	}
	below, err := g.tree.children(dir)
	if err != nil && !gone(err) {
		return nil, err
	}
	for _, name := range below {
		more, err := g.within(d, path.Join(dir, name), depth-1)
		if err != nil {
			return nil, err
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// withoutGuests drops processes of which only some threads are in a v1 group.
// The kernel lists those too, and one of them may be the supervisor that just
// starts the program. A process whose first thread has ended stays a member.
func (g *Group) withoutGuests(dir string, pids []int) ([]int, error) {
	text, err := g.tree.read(path.Join(dir, "tasks"))
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	threads := parsePIDs(text)
	slices.Sort(threads)
	return slices.DeleteFunc(pids, func(pid int) bool {
		if pid == os.Getpid() {
			return true
		}
		_, led := slices.BinarySearch(threads, pid)
		return !led && !g.firstThreadEnded(pid)
	}), nil
}

func (g *Group) firstThreadEnded(pid int) bool {
	text, err := g.tree.read(path.Join(g.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	i := strings.LastIndex(text, ") ") // the name before it may hold anything
	return i >= 0 && strings.HasPrefix(text[i+2:], "Z")
}

// Signal sends sig to every process of the group and returns how many got it.
// Each is held open, then looked up in the group again, then signalled: a PID
// that was reused in between is never hit.
func (g *Group) Signal(sig syscall.Signal) (int, error) {
	pids, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	var hit int
	var failed []error
	for some := range slices.Chunk(pids, batch) {
		n, err := g.signalSome(some, sig)
		hit += n
		failed = append(failed, err)
	}
	return hit, errors.Join(failed...)
}

func (g *Group) signalSome(pids []int, sig syscall.Signal) (int, error) {
	held := map[int]handle{}
	defer func() {
		for _, h := range held {
			h.close()
		}
	}()
	for _, pid := range pids {
		if h, err := openProcess(pid); err == nil {
			held[pid] = h
		}
	}
	members, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	var hit int
	var failed error
	for pid, h := range held {
		if _, in := slices.BinarySearch(members, pid); !in {
			continue
		}
		switch err := h.signal(sig); {
		case err == nil:
			hit++
		case !errors.Is(err, syscall.ESRCH):
			failed = err
		}
	}
	return hit, failed
}
