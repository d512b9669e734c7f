package identity

import (
	"bytes"
	"encoding/binary"
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
	pids, err := p.listPIDs()
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
	return descendantsOf(all, pid), nil
}

// Marked lists the processes that were started with KEY=VALUE in their environment, by
// ascending PID, the caller included. Processes with an unreadable environment (zombies,
// other users') are left out, and so are those that cleared or overwrote it.
func (p Proc) Marked(key, value string) ([]Stat, error) {
	if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(value, "\x00") {
		return nil, errors.New("a mark needs a key without '=' and no NUL")
	}
	pids, err := p.listPIDs()
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

// descendantsOf lists all processes with pid as an ancestor, nearest first, without pid
// itself. A list that was read while processes came and went may have a cycle of parents; no
// process is visited twice.
func descendantsOf(all []Stat, pid int) []Stat {
	children := make(map[int][]int, len(all))
	for i, s := range all {
		children[s.PPID] = append(children[s.PPID], i)
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, i := range children[queue[0]] {
			if s := all[i]; !seen[s.PID] {
				seen[s.PID] = true
				found = append(found, s)
				queue = append(queue, s.PID)
			}
		}
	}
	return slices.Clip(found)
}

// entryMatcher searches for one entry in a list of entries that end in NUL and arrive in
// pieces, so that an environment of any size is read with one small buffer.
type entryMatcher struct {
	want  string
	at    int  // matched bytes of the current entry
	wrong bool // the current entry differs
	found bool
}

func (m *entryMatcher) matchPiece(piece []byte) {
	for _, b := range piece {
		switch {
		case b == 0:
			m.endEntry()
		case m.wrong:
		case m.at < len(m.want) && m.want[m.at] == b:
			m.at++
		default:
			m.wrong = true
		}
	}
}

// endEntry completes an entry; the last one may lack its NUL.
func (m *entryMatcher) endEntry() {
	m.found = m.found || (!m.wrong && m.at == len(m.want))
	m.at, m.wrong = 0, false
}

// procargsHave searches for an entry in the environment part of macOS's kern.procargs2: argc,
// the path of the program, padding, argc arguments, the environment; all but the first end in
// NUL.
func procargsHave(answer []byte, entry string) bool {
	if len(answer) < 4 {
		return false
	}
	argc := binary.NativeEndian.Uint32(answer)
	_, rest, ok := bytes.Cut(answer[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for ; ok && argc > 0; argc-- {
		_, rest, ok = bytes.Cut(rest, []byte{0})
	}
	if !ok {
		return false
	}
	m := entryMatcher{want: entry}
	m.matchPiece(rest)
	m.endEntry()
	return m.found
}
