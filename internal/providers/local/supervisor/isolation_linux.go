package supervisor

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/wire"
)

// isolation is what separates a sandbox from the rest of the machine. It is
// no security boundary; it makes the tree killable as one.
type isolation int

const (
	isolateNothing isolation = iota
	isolatePID               // PID and mount namespace, as root
	isolateUserPID           // the same inside a user namespace, as anybody
)

// String is what `inspect` shows.
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

func (i isolation) isolated() bool { return i != isolateNothing }

// isolationLevels lists what to try, strongest first.
func isolationLevels() []isolation {
	if os.Geteuid() == 0 {
		return []isolation{isolatePID, isolateUserPID, isolateNothing}
	}
	return []isolation{isolateUserPID, isolateNothing}
}

// isolationFail turns a failure under isolation into one that permits to try
// with less; without isolation nothing weaker is left.
func isolationFail(level isolation, err error) error {
	if !level.isolated() {
		return fmt.Errorf("starting the stub: %w", err)
	}
	return &wire.Fail{Kind: wire.FailIsolation, Message: level.String() + ": " + err.Error()}
}

// startStub forks the stub from this locked thread, so that this thread's
// death ends it.
func startStub(level isolation, p *stubPipes, socket *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := &os.ProcAttr{
		Dir: "/",
		Env: []string{"GOMAXPROCS=1"},
		Files: []*os.File{
			null, p.stdout.child, p.stderr.child,
			wire.StubOrderFD: p.order.child, wire.StubReportFD: p.report.child,
			wire.StubSocketFD: socket, wire.StubLifeFD: p.life.child,
		},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
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
		// Its death would set free what it adopted. It learns of its supervisor's end
		// by the life pipe, ends its descendants and then itself.
		attr.Sys.Pdeathsig = 0
	}
	return os.StartProcess("/proc/self/exe", []string{"sbx", wire.StubArg}, attr)
}

// adoptOrphans makes this process the parent of whatever its tree abandons.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// hostPID translates the program's PID from the stub's counting to ours; 0
// when the program is gone already.
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
