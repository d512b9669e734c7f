package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/internal/poll"
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
		pids, err := g.listDirPIDs(d, d.Path, maxDepth)
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

// listDirPIDs lists the processes of one directory and those below it.
func (g *Group) listDirPIDs(d Dir, dir string, depth int) ([]int, error) {
	text, err := g.tree.readText(path.Join(dir, "cgroup.procs"))
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
		more, err := g.listDirPIDs(d, path.Join(dir, name), depth-1)
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
	text, err := g.tree.readText(path.Join(dir, "tasks"))
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
	text, err := g.tree.readText(path.Join(g.proc, strconv.Itoa(pid), "stat"))
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
		switch err := h.signalProcess(sig); {
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
	mounts, err := g.tree.readText(path.Join(self, "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("join control group: %w", err)
	}
	groups, err := g.tree.readText(path.Join(self, "cgroup"))
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

// ErrAlive says that processes remained when the context ended.
var ErrAlive = errors.New("processes are left in the control group")

// The pauses between two reads of a v1 group, which has no events.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// Kill ends every process of the group and waits until none is left. It returns how many
// different processes it saw. Killing an empty or removed group is not an error. When ctx
// ends first the error wraps ErrAlive and the context's.
func (g *Group) Kill(ctx context.Context) (int, error) {
	seen, err := g.PIDs()
	if err != nil {
		return 0, err
	}
	if d, ok := g.unifiedDir(); ok {
		if err := g.killUnified(ctx, d, len(seen)); err != nil {
			return len(seen), err
		}
	}
	return g.killMembers(ctx, seen)
}

// killUnified makes the kernel kill the whole tree at once. A kernel before 5.14 has no
// cgroup.kill; killMembers does it then.
func (g *Group) killUnified(ctx context.Context, d Dir, seen int) error {
	err := g.tree.writeFile(path.Join(d.Path, "cgroup.kill"), "1")
	if noSuchGroup(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kill control group: %w", err)
	}
	return g.asErrAlive(g.awaitKey(ctx, d, "populated 0"), seen)
}

// awaitKey waits until cgroup.events has the line, or the group is removed.
func (g *Group) awaitKey(ctx context.Context, d Dir, line string) error {
	err := awaitEvent(ctx, path.Join(d.Path, "cgroup.events"), func(text string) bool {
		return slices.Contains(strings.Split(text, "\n"), line)
	})
	if noSuchGroup(err) {
		return nil
	}
	return err
}

// killMembers kills the remaining processes by signals: all of them under v1, stragglers
// otherwise. New processes are refused and the members frozen during a round, so that a fork
// bomb cannot outrun it. A round in which every member was signalled before freezes nothing: they
// cannot fork any more, and on a busy machine would be frozen again before they have died.
func (g *Group) killMembers(ctx context.Context, seen []int) (int, error) {
	var signalled []int
	for pauses := poll.NewBackoff(firstPause, lastPause); ; {
		pids, err := g.PIDs()
		if err != nil {
			return len(seen), err
		}
		seen = slices.Concat(seen, pids)
		slices.Sort(seen)
		seen = slices.Compact(seen)
		if len(pids) == 0 {
			return len(seen), nil
		}
		isNew := func(pid int) bool { return !slices.Contains(signalled, pid) }
		if err := g.killRound(slices.ContainsFunc(pids, isNew)); err != nil {
			return len(seen), err
		}
		signalled = pids
		if pauses.Sleep(ctx) != nil {
			return len(seen), g.asErrAlive(ctx.Err(), len(pids))
		}
	}
}

// killRound is one round of killMembers. Members are thawed in every case: frozen processes
// cannot die.
func (g *Group) killRound(freeze bool) error {
	if d, ok := g.dirWith("pids"); ok && !d.Borrowed {
		_ = g.tree.writeFile(path.Join(d.Path, "pids.max"), "0") // without it more rounds are needed
	}
	if freeze {
		_ = g.requestFrozen(true)
	}
	_, err := g.Signal(syscall.SIGKILL)
	if thaw := g.requestFrozen(false); !errors.Is(thaw, errors.ErrUnsupported) {
		err = errors.Join(err, thaw)
	}
	return err
}

// asErrAlive wraps the error of a wait that the context ended.
func (g *Group) asErrAlive(err error, left int) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %d seen in %s: %w", ErrAlive, left, g.state.ID, err)
	}
	return err
}

// requestFrozen requests the change and does not wait for it.
func (g *Group) requestFrozen(frozen bool) error {
	file, value := "", ""
	if d, ok := g.unifiedDir(); ok {
		file, value = path.Join(d.Path, "cgroup.freeze"), "0"
		if frozen {
			value = "1"
		}
	} else if d, ok := g.dirWith("freezer"); ok {
		file, value = path.Join(d.Path, "freezer.state"), "THAWED"
		if frozen {
			value = "FROZEN"
		}
	}
	if file == "" {
		return fmt.Errorf("freeze %s: %w", g.state.ID, errors.ErrUnsupported)
	}
	if err := g.tree.writeFile(file, value); err != nil && !noSuchGroup(err) {
		return err
	}
	return nil
}
