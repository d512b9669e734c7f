package identity

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// Proc reads the process table. Its zero value is that of the host; tests set Root to a tree
// of their own. macOS asks the kernel and ignores Root.
type Proc struct {
	Root string // where procfs is mounted; "" = /proc
}

// Host is the process table of this machine.
func Host() Proc { return Proc{Root: "/proc"} }

// All reads every visible process, by ascending PID. Processes that end meanwhile are left
// out.
func (p Proc) All() ([]Stat, error) {
	pids, err := p.pids()
	if err != nil {
		return nil, err
	}
	slices.Sort(pids)
	all := make([]Stat, 0, len(pids))
	for _, pid := range pids {
		switch s, err := p.Stat(pid); {
		case err == nil:
			all = append(all, s)
		case errors.Is(err, ErrDead), errors.Is(err, fs.ErrPermission): // ended, or hidden by the mount
		default:
			return nil, err
		}
	}
	return all, nil
}

// Descendants lists the children of pid, their children and so on, nearest first, zombies
// included (see Stat.Dead), without pid itself. An orphaned process belongs to init or to the
// nearest subreaper and is no longer a descendant of the old parent: Marked finds those.
func (p Proc) Descendants(pid int) ([]Stat, error) {
	all, err := p.All()
	if err != nil {
		return nil, err
	}
	return below(all, pid), nil
}

// Marked lists the processes that were started with KEY=VALUE in their environment, by
// ascending PID, the caller included. Processes with an unreadable environment (zombies,
// other users') are left out, and so are those that cleared or overwrote it.
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
		if s, err := p.Stat(pid); err == nil {
			found = append(found, s)
		}
	}
	return found, nil
}

// IsMarked is Marked for one process; false also when its environment is unreadable.
func (p Proc) IsMarked(pid int, key, value string) bool {
	return key != "" && p.hasEntry(pid, key+"="+value)
}

// Open opens a process that a search has found, if it is still the same one. Errors as of
// OpenWhere.
func (p Proc) Open(s Stat) (*Handle, error) {
	return OpenWhere(s.PID, func() bool {
		now, err := p.Stat(s.PID)
		return err == nil && now.StartTicks == s.StartTicks
	})
}
