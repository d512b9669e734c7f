package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
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

// TicksPerSecond is the unit of StartTicks and UTimeSTimeTicks on Linux:
// USER_HZ, which is 100 on every architecture that Go supports.
const TicksPerSecond = 100

// Stat is the entry of one process in the process table.
type Stat struct {
	PID             int
	PPID            int
	State           byte   // R S D Z T t X I, as in proc(5)
	Threads         int    // including a main thread that has ended
	StartTicks      uint64 // as in Process
	RSSBytes        int64  // resident; pages shared with others count in full
	UTimeSTimeTicks uint64 // CPU time of the process alone, without its children, in 1/TicksPerSecond s
	Comm            string // untrusted: the program chooses it, up to 15 bytes, any but NUL
}

// Dead reports whether the process has ended and waits for its parent. A main thread that
// ended before the others is shown as Z too; its process is alive.
func (s Stat) Dead() bool { return (s.State == 'Z' || s.State == 'X') && s.Threads <= 1 }

// Thread is what the kernel's scheduler counted of one thread.
type Thread struct {
	TID      int
	Wanted   time.Duration // since its start: it ran, or was ready to run; a wait counts when it ends
	Runnable bool          // it runs or is ready to run
	Sleeps   *int64        // how often it has gone to sleep by itself; nil = not reported
}

// The fields of /proc/PID/stat that are read, counted from the state (field 3 in proc(5)).
const (
	fieldState   = 0
	fieldPPID    = 1
	fieldUTime   = 11
	fieldSTime   = 12
	fieldThreads = 17
	fieldStart   = 19
	fieldRSS     = 21
)

var errStat = errors.New("not a line of /proc/PID/stat")

// parseStat reads one /proc/PID/stat. The name is between the first opening and the last
// closing parenthesis and may itself contain both, blanks and line ends. pageSize is in bytes.
func parseStat(text []byte, pageSize int64) (Stat, error) {
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || shut < open {
		return Stat{}, errStat
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil || pid <= 0 {
		return Stat{}, errStat
	}
	s := Stat{PID: pid, Comm: string(text[open+1 : shut])}
	rest := text[shut+1:]
	for n := range fieldRSS + 1 {
		var field []byte
		if field, rest = nextField(rest); len(field) == 0 {
			return Stat{}, errStat // truncated
		}
		if err := s.setField(n, field, pageSize); err != nil {
			return Stat{}, err
		}
	}
	return s, nil
}

// nextField cuts off one field. Unlike bytes.FieldsSeq it leaves the caller's buffer on the
// stack.
func nextField(text []byte) (field, rest []byte) {
	text = bytes.TrimLeft(text, " \n")
	if end := bytes.IndexAny(text, " \n"); end >= 0 {
		return text[:end], text[end:]
	}
	return text, nil
}

func (s *Stat) setField(n int, field []byte, pageSize int64) error {
	if n == fieldState {
		s.State = field[0]
		if len(field) != 1 {
			return errStat
		}
		return nil
	}
	var err error
	switch n {
	case fieldPPID:
		s.PPID, err = strconv.Atoi(string(field))
	case fieldUTime, fieldSTime:
		var ticks uint64
		ticks, err = strconv.ParseUint(string(field), 10, 64)
		s.UTimeSTimeTicks += ticks
	case fieldThreads:
		s.Threads, err = strconv.Atoi(string(field))
	case fieldStart:
		s.StartTicks, err = strconv.ParseUint(string(field), 10, 64)
	case fieldRSS:
		var pages int64
		pages, err = strconv.ParseInt(string(field), 10, 64)
		s.RSSBytes = pagesToBytes(pages, pageSize)
	}
	if err != nil {
		return errStat
	}
	return nil
}

// pagesToBytes converts; the kernel's count can be slightly negative for a moment, which gives 0.
func pagesToBytes(pages, pageSize int64) int64 {
	switch {
	case pages <= 0 || pageSize <= 0:
		return 0
	case pages > math.MaxInt64/pageSize:
		return math.MaxInt64
	}
	return pages * pageSize
}

// dispositions is what /proc/PID/status says of signals; bit n-1 is signal n.
type dispositions struct {
	ignored, caught uint64
	innerPID        int // its PID in its own PID namespace
}

// sigterm is the bit of SIGTERM, signal 15 on Linux and macOS.
const sigterm = 1 << (15 - 1)

// parseLine reads one line of the file; lines about other things change nothing.
func (d *dispositions) parseLine(line []byte) {
	key, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return
	}
	switch string(key) {
	case "SigIgn":
		d.ignored = hexWord(value)
	case "SigCgt":
		d.caught = hexWord(value)
	case "NSpid":
		for field := range bytes.FieldsSeq(value) {
			d.innerPID, _ = strconv.Atoi(string(field)) // 0 for a malformed number
		}
	}
}

func hexWord(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(bytes.TrimSpace(text)), 16, 64) // malformed = no signal
	return n
}

// ignoresTerm: the init of a PID namespace gets no signal without a handler.
func (d *dispositions) ignoresTerm() bool {
	return d.ignored&sigterm != 0 || (d.innerPID == 1 && d.caught&sigterm == 0)
}
