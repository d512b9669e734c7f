package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/wire"
)

// placement is where a program is born: which cgroups, with which privileges.
type placement struct {
	group *cgroup.Group
}

// enter prepares the calling thread, which is locked and stays that way.
func (p *placement) enter(state json.RawMessage) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	// Capabilities are a thread's own: what the stub needed to mount /proc must
	// not be handed on from this one.
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

// attributes makes the program a session of its own that dies with the stub
// and is born in the v2 cgroup.
func (p *placement) attributes(tty bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: tty, Ctty: 0, Pdeathsig: syscall.SIGKILL}
	if p.group != nil {
		if fd := p.group.FD(); fd >= 0 {
			attr.UseCgroupFD, attr.CgroupFD = true, fd
		}
	}
	return attr
}

// settle sets what can only be set on a process that exists. RLIMIT_DATA is
// checked against what a process has in all, so a moment's delay gives away
// nothing.
func (p *placement) settle(pid int, order wire.StubOrder) {
	if order.DataBytes > 0 {
		limit := unix.Rlimit{Cur: uint64(order.DataBytes), Max: uint64(order.DataBytes)}
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &limit, nil) // a second line behind the watchdog; gone with a program that has ended
	}
	if order.OOMScoreAdj != 0 {
		_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(strconv.Itoa(order.OOMScoreAdj)), 0) // a preference, not a promise
	}
}

// settle makes the stub the PID 1 that it is: its own /proc, no core dumps, no
// capabilities to pass on.
func settle(isolated bool) error {
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
