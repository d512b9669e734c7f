package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// maxDepth limits the depth of groups that a program made below its own.
const maxDepth = 16

// signalBatch is how many processes are held open at the same time for signalling.
const signalBatch = 64

// PIDs lists the processes of the group in ascending order, also those in groups that the
// program made below it. A process of which only a thread joined (JoinThread) is not listed.
// A removed group has none.
func (g *Group) PIDs() ([]int, error) {
	var all []int
	for _, d := range g.state.Dirs {
		if d.Borrowed {
			continue
		}
		pids, err := g.listPIDs(d, d.Path, maxDepth)
		if err != nil {
			return nil, err
		}
		all = append(all, pids...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Empty reports whether no process is left. A removed group is empty.
func (g *Group) Empty() (bool, error) {
	pids, err := g.PIDs()
	return err == nil && len(pids) == 0, err
}

// listPIDs lists the processes of one directory and those below it.
func (g *Group) listPIDs(d Dir, dir string, depth int) ([]int, error) {
	text, err := g.tree.readFile(path.Join(dir, "cgroup.procs"))
	switch {
	case noSuchGroup(err):
		return nil, nil
	case err != nil && !errors.Is(err, syscall.EOPNOTSUPP): // a threaded group: its processes are listed above it
		return nil, err
	}
	pids := parsePIDs(text)
	if !d.V2 && len(pids) > 0 {
		if pids, err = g.dropPartialMembers(dir, pids); err != nil {
			return nil, err
		}
	}
	if depth == 0 {
		return pids, nil
	}
	below, err := g.tree.childDirs(dir)
	if err != nil && !noSuchGroup(err) {
		return nil, err
	}
	for _, name := range below {
		more, err := g.listPIDs(d, path.Join(dir, name), depth-1)
		if err != nil {
			return nil, err
		}
		pids = append(pids, more...)
	}
	return pids, nil
}

// dropPartialMembers removes processes of which only some threads are in a v1 group. The
// kernel lists those too, and one of them may be the supervisor that is starting the program.
// A process whose first thread has ended stays a member.
func (g *Group) dropPartialMembers(dir string, pids []int) ([]int, error) {
	text, err := g.tree.readFile(path.Join(dir, "tasks"))
	if noSuchGroup(err) {
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
	text, err := g.tree.readFile(path.Join(g.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	i := strings.LastIndex(text, ") ") // the process name before it may contain anything
	return i >= 0 && strings.HasPrefix(text[i+2:], "Z")
}

// Signal sends sig to every process of the group and returns how many received it. Each
// process is held open, then looked up in the group again, then signalled: a reused PID never
// receives it.
func (g *Group) Signal(sig syscall.Signal) (int, error) {
	pids, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	var hit int
	var failed []error
	for some := range slices.Chunk(pids, signalBatch) {
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
			h.closeHandle()
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
		switch err := h.sendSignal(sig); {
		case err == nil:
			hit++
		case !errors.Is(err, syscall.ESRCH):
			failed = err
		}
	}
	return hit, failed
}

// ErrStranded says that a thread could not be moved back. The caller must let its goroutine
// end while locked to the thread: the runtime then ends the thread.
var ErrStranded = errors.New("the thread stays in the control group")

// ErrMainThread says that the calling thread is the first of its process. The kernel charges
// a process's memory to the groups of the first thread and counts the process as a member,
// and the runtime can never end that thread.
var ErrMainThread = errors.New("the first thread of a process must not join a control group")

// JoinThread moves the calling thread into the v1 directories of the group, so that the
// memory of a program forked from it is charged from the start. The caller has called
// runtime.LockOSThread and starts the program from this goroutine, with FD as its
// SysProcAttr.CgroupFD where that is not negative. On an error the thread is in its former
// groups, or the error wraps ErrStranded. The first thread is refused with ErrMainThread,
// unless the group has only v2 directories.
//
// For a group with a v2 directory alone, JoinThread only checks that the directory exists:
// FD cannot report its absence, and the program would start outside.
func (g *Group) JoinThread() error {
	if d, ok := g.unifiedDir(); ok {
		if _, err := g.tree.inodeOfDir(d.Path); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	homes, err := g.currentDirs()
	if err != nil {
		return err
	}
	var left []string
	if len(homes) > 0 && threadID() == os.Getpid() {
		return ErrMainThread
	}
	for i, d := range g.legacyDirs() {
		if err := g.tree.writeFile(path.Join(d.Path, "tasks"), "0"); err != nil {
			return errors.Join(fmt.Errorf("join control group: %w", err), g.moveTo(left))
		}
		left = append(left, homes[i])
	}
	return nil
}

// legacyDirs lists the v1 directories.
func (g *Group) legacyDirs() []Dir {
	var list []Dir
	for _, d := range g.state.Dirs {
		if !d.V2 {
			list = append(list, d)
		}
	}
	return list
}

// currentDirs lists the directories that the calling thread is in, one for each of
// legacyDirs.
func (g *Group) currentDirs() ([]string, error) {
	dirs := g.legacyDirs()
	if len(dirs) == 0 {
		return nil, nil
	}
	self := path.Join(g.proc, "thread-self")
	mounts, err := g.tree.readFile(path.Join(self, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("join control group: %w", err)
	}
	groups, err := g.tree.readFile(path.Join(self, "cgroup"))
	if err != nil {
		return nil, fmt.Errorf("join control group: %w", err)
	}
	var h Host
	h.tree = g.tree
	h.addHierarchies(parseMounts(mounts), parseMembership(groups))
	var homes []string
	for _, d := range dirs {
		var home string
		if hi := h.legacyHierarchy(d.Controllers[0]); hi != nil {
			home = hi.own
		}
		homes = append(homes, home)
	}
	return homes, nil
}

// moveTo moves the calling thread into each of the directories.
func (g *Group) moveTo(homes []string) error {
	var failed error
	for _, home := range homes {
		if home == "" {
			failed = fmt.Errorf("%w: its former group is not visible", ErrStranded)
			continue
		}
		if err := g.tree.writeFile(path.Join(home, "tasks"), "0"); err != nil {
			failed = fmt.Errorf("%w: %w", ErrStranded, err)
		}
	}
	return failed
}
