package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/wire"
)

// isolation separates a sandbox from the rest of the machine. It is no security boundary; it
// makes the whole tree killable at once.
type isolation int

const (
	isolateNothing isolation = iota
	isolatePID               // PID and mount namespace, as root
	isolateUserPID           // the same inside a user namespace, as an ordinary user
)

// String is the isolation in `sbx inspect`.
func (i isolation) String() string {
	switch i {
	case isolatePID:
		return "pid+mount namespaces"
	case isolateUserPID:
		return "user+pid+mount namespaces"
	case isolateNothing:
	}
	return "none"
}

func (i isolation) usesNamespaces() bool { return i != isolateNothing }

// isolationLevels lists the levels to try, strongest first.
func isolationLevels() []isolation {
	if os.Geteuid() == 0 {
		return []isolation{isolatePID, isolateUserPID, isolateNothing}
	}
	return []isolation{isolateUserPID, isolateNothing}
}

// isolationFail marks a failure that permits a weaker level; without isolation there is none.
func isolationFail(level isolation, err error) error {
	if !level.usesNamespaces() {
		return fmt.Errorf("starting the stub: %w", err)
	}
	return &wire.Fail{Kind: wire.FailIsolation, Message: level.String() + ": " + err.Error()}
}

// startStub forks the stub from this locked thread: the parent-death signal is sent when this
// thread ends.
func startStub(level isolation, p *stubPipes, socket *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := stubAttributes(null, p, socket)
	attr.Sys.Pdeathsig = syscall.SIGKILL
	switch level {
	case isolatePID:
		attr.Sys.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	case isolateUserPID:
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Sys.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
		attr.Sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.Sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.Sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // to mount /proc; the stub drops it
	case isolateNothing:
		// The stub's death would release what it adopted. The life pipe reports the
		// supervisor's end to the stub, which ends its descendants and itself.
		attr.Sys.Pdeathsig = 0
	}
	return os.StartProcess("/proc/self/exe", []string{"sbx", wire.StubArg}, attr)
}

// adoptOrphans makes this process the parent of orphaned processes of its tree.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// hostPID translates the program's PID from the stub's namespace to this one; 0 when the
// program has ended.
func hostPID(stub, inner int) int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", stub))
	if err != nil {
		return 0
	}
	for _, task := range tasks {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", stub, task.Name()))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(raw)) {
			pid, err := strconv.Atoi(word)
			if err == nil && innerPID(pid) == inner {
				return pid
			}
		}
	}
	return 0
}

// innerPID is the PID that a process has in its innermost namespace.
func innerPID(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			fields := strings.Fields(rest)
			inner, err := strconv.Atoi(fields[len(fields)-1])
			if err == nil {
				return inner
			}
		}
	}
	return 0
}

// placement is where a program starts: its cgroups and privileges.
type placement struct {
	group *cgroup.Group
}

// prepareThread prepares the calling thread, which is locked and stays so.
func (p *placement) prepareThread(state json.RawMessage) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	// Capabilities belong to a thread: what the stub needed to mount /proc must not be
	// inherited from this one.
	if err := dropAmbient(); err != nil {
		return err
	}
	if len(state) == 0 {
		return nil
	}
	group, err := cgroup.ReopenRecorded(state)
	if err != nil {
		return fmt.Errorf("reopening the cgroup: %w", err)
	}
	if lost := group.Lost(); len(lost) > 0 {
		return fmt.Errorf("a control group of the sandbox is %s: %s", lost[0].Reason, lost[0].Path)
	}
	p.group = group
	if err := group.JoinThread(); err != nil {
		return fmt.Errorf("joining the cgroup: %w", err)
	}
	return nil
}

// procAttributes makes the program a session of its own that dies with the stub and starts in
// the v2 cgroup.
func (p *placement) procAttributes(tty bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	if p.group != nil {
		if fd := p.group.FD(); fd >= 0 {
			attr.UseCgroupFD, attr.CgroupFD = true, fd
		}
	}
	return attr
}

// applyLimits sets what can only be set on an existing process. RLIMIT_DATA is checked against
// the total of a process, so the delay does not matter.
func (p *placement) applyLimits(pid int, order wire.StubOrder) {
	if order.DataBytes > 0 {
		limit := unix.Rlimit{Cur: uint64(order.DataBytes), Max: uint64(order.DataBytes)}
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil) // in addition to the watchdog; fails for a program that has ended
	}
	if order.OOMScoreAdj != 0 {
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(strconv.Itoa(order.OOMScoreAdj)), 0) // only a preference
	}
}

// setUpStub prepares the stub as PID 1: its own /proc, no core dumps, no inheritable
// capabilities.
func setUpStub(isolated bool) error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("core limit: %w", err)
	}
	if !isolated {
		return adoptOrphans()
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return dropAmbient()
}

func dropAmbient() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
