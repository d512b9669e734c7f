package identity

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// Proc reads the process table. Its zero value reads that of the host; tests
// point Root at a tree of their own. macOS asks the kernel and ignores Root.
type Proc struct {
	Root string // where procfs is mounted; "" = /proc
}

// Host is the process table of this machine.
func Host() Proc { return Proc{Root: "/proc"} }

// Stat reads one process. Errors: ErrDead when there is none (or the mount hides
// it), errors.ErrUnsupported.
func (p Proc) Stat(pid int) (Stat, error) { return p.stat(pid) }

// All reads every process that can be seen, by rising number. Who ends
// meanwhile is left out.
func (p Proc) All() ([]Stat, error) {
	pids, err := p.pids()
	if err != nil {
		return nil, err
	}
	slices.Sort(pids)
	all := make([]Stat, 0, len(pids))
	for _, pid := range pids {
		switch s, err := p.stat(pid); {
		case err == nil:
			all = append(all, s)
		case errors.Is(err, ErrDead), errors.Is(err, fs.ErrPermission): // ended, or hidden by the mount
		default:
			return nil, err
		}
	}
	return all, nil
}

// Descendants lists the children of pid, their children and so on, nearest
// first, zombies included (see Stat.Dead), without pid itself. Who has lost its
// parent belongs to init or to the nearest subreaper and is no descendant of
// the old parent any more: Marked finds those.
func (p Proc) Descendants(pid int) ([]Stat, error) {
	all, err := p.All()
	if err != nil {
		return nil, err
	}
	return below(all, pid), nil
}

// Marked lists the processes that were started with KEY=VALUE in their
// environment, exactly, by rising number, the caller's own included. Processes
// whose environment cannot be read (zombies, other users') are left out, and so
// are those that cleared or overwrote it.
func (p Proc) Marked(key, value string) ([]Stat, error) {
	if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
		return nil, errors.New("a mark needs a key without '=' and no NUL")
	}
	pids, err := p.pids()
	if err != nil {
		return nil, err
	}
	slices.Sort(pids)
	var found []Stat
	for _, pid := range pids {
		if !p.IsMarked(pid, key, value) {
			continue
		}
		if s, err := p.stat(pid); err == nil {
			found = append(found, s)
		}
	}
	return found, nil
}

// IsMarked is Marked for one process; false also when that cannot be read.
func (p Proc) IsMarked(pid int, key, value string) bool {
	return key != "" && p.hasEntry(pid, key+"="+value)
}

// IgnoresTerm says that SIGTERM will not end the process: it is ignored, or left at its
// default by the init of a PID namespace, to which the kernel then does not deliver it. A
// handler that does nothing cannot be seen. A blocked TERM is not an ignored one: a shell
// blocks all signals while it forks, and a program that waits for signals with sigwait or
// signalfd blocks them all its life. Errors: ErrDead, fs.ErrPermission,
// errors.ErrUnsupported.
func (p Proc) IgnoresTerm(pid int) (bool, error) { return p.ignoresTerm(pid) }

// IOOperations counts the read and write calls of the process since its start,
// its threads included, its children not; false when that is unknown (another
// user's process, or no Linux). Traffic by send and recv is not in it.
func (p Proc) IOOperations(pid int) (int64, bool) { return p.operations(pid) }

// Busiest is how long, in nanoseconds since its start, the busiest living thread
// of a process has run or was ready to and waited for a processor; false when
// that is unknown (no Linux, or a kernel that does not keep account).
func (p Proc) Busiest(pid int) (int64, bool) { return p.busiest(pid) }

// Waiting names the peer of the TCP connection that a thread of the process
// waits for, "tcp 127.0.0.1:443" or "tcp [::1]:443", or "" when it waits for
// something else or that cannot be seen. An event loop waits for many things:
// the connection of the lowest descriptor is named, and only while no thread
// runs.
func (p Proc) Waiting(pid int) string { return p.waiting(pid) }

// Open takes hold of a process that a search has found, if it is still the same
// one. Errors as of OpenWhere.
func (p Proc) Open(s Stat) (*Handle, error) {
	return OpenWhere(s.PID, func() bool {
		now, err := p.Stat(s.PID)
		return err == nil && now.StartTicks == s.StartTicks
	})
}
