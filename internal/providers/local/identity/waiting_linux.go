package identity

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// threadWait is what one thread is blocked in.
type threadWait struct {
	kind waitKind
	fd   int // of the socket, or of the epoll set
}

type waitKind int

const (
	waitNone  waitKind = iota // in something else
	waitRun                   // not blocked
	waitRead                  // in a read or connect of one descriptor
	waitEpoll                 // for a set of descriptors that procfs lists
	waitAny                   // for descriptors that procfs does not list
)

// Waiting is the peer of the TCP connection that a thread of the process waits for, "tcp
// 127.0.0.1:443" or "tcp [::1]:443"; "" when it waits for something else or it is unknown. An
// event loop waits for many connections: that of the lowest descriptor is returned, and only
// while no thread runs.
func (p Proc) Waiting(pid int) string {
	waits := p.threadWaits(pid)
	if !slices.ContainsFunc(waits, func(w threadWait) bool { return w.kind >= waitRead }) {
		return ""
	}
	peers := p.tcpPeers(pid)
	for _, w := range waits {
		if peer, ok := peers[w.fd]; ok && w.kind == waitRead {
			return "tcp " + peer
		}
	}
	if slices.ContainsFunc(waits, func(w threadWait) bool { return w.kind == waitRun }) {
		return ""
	}
	if fd := p.lowestWatched(pid, waits, peers); fd >= 0 {
		return "tcp " + peers[fd]
	}
	return ""
}

// lowestWatched finds the lowest descriptor with a peer that some thread waits for together
// with others, or -1.
func (p Proc) lowestWatched(pid int, waits []threadWait, peers map[int]string) int {
	lowest := -1
	consider := func(fd int) {
		if _, ok := peers[fd]; ok && (lowest < 0 || fd < lowest) {
			lowest = fd
		}
	}
	for _, w := range waits {
		switch w.kind {
		case waitAny:
			for fd := range peers {
				consider(fd)
			}
		case waitEpoll:
			p.eachWatched(pid, w.fd, consider)
		default:
		}
	}
	return lowest
}

// eachWatched calls each for the descriptors in an epoll set: "tfd:   5 events: ...".
func (p Proc) eachWatched(pid, epoll int, each func(fd int)) {
	_ = readLines(p.procPath(pid, "fdinfo/"+strconv.Itoa(epoll)), func(line []byte) bool {
		if rest, ok := bytes.CutPrefix(line, []byte("tfd:")); ok {
			for field := range bytes.FieldsSeq(rest) {
				if fd, err := strconv.Atoi(string(field)); err == nil {
					each(fd)
				}
				break
			}
		}
		return true
	}) // an unreadable set counts as empty
}

func (p Proc) threadWaits(pid int) []threadWait {
	threads, err := listNumbers(p.procPath(pid, "task"))
	if err != nil {
		return nil
	}
	slices.Sort(threads)
	list := make([]threadWait, 0, len(threads))
	for _, tid := range threads {
		list = append(list, p.waitOf(pid, "task/"+strconv.Itoa(tid)))
	}
	return list
}

// waitOf prefers the system call; where ptrace rules hide it (Yama, from a process that is no
// ancestor), the kernel function in which the thread sleeps shows the kind.
func (p Proc) waitOf(pid int, task string) threadWait {
	var room [smallFile]byte
	if text, err := readSmall(p.procPath(pid, task+"/syscall"), room[:]); err == nil {
		return parseSyscall(string(text))
	}
	text, err := readSmall(p.procPath(pid, task+"/wchan"), room[:])
	if err == nil && slices.Contains(sleepsOnSockets(), strings.TrimSpace(string(text))) {
		return threadWait{kind: waitAny}
	}
	return threadWait{}
}

func sleepsOnSockets() []string {
	return []string{
		"wait_woken", "sk_wait_data", "ep_poll", "do_epoll_wait", "poll_schedule_timeout", "do_poll", "do_select", "inet_stream_connect",
		"__inet_stream_connect",
	}
}

// parseSyscall reads /proc/PID/task/TID/syscall: "running", or the number of the call and its
// arguments, the first of which is the descriptor.
func parseSyscall(text string) threadWait {
	fields := strings.Fields(text)
	if len(fields) == 1 && fields[0] == "running" {
		return threadWait{kind: waitRun}
	}
	if len(fields) < 2 {
		return threadWait{}
	}
	number, err := strconv.Atoi(fields[0])
	first, err2 := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 64)
	if err != nil || err2 != nil || number < 0 {
		return threadWait{}
	}
	w := threadWait{kind: waitKindOf(uintptr(number))}
	if w.kind == waitRead || w.kind == waitEpoll {
		w.fd = int(int32(first)) // the kernel uses the low 32 bits
	}
	return w
}

func waitKindOf(number uintptr) waitKind {
	switch number {
	case unix.SYS_READ, unix.SYS_READV, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG, unix.SYS_CONNECT:
		return waitRead
	case unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2:
		return waitEpoll
	case unix.SYS_PPOLL, unix.SYS_PSELECT6:
		return waitAny
	}
	return oldWaitKindOf(number)
}

// tcpPeers maps each descriptor that is a TCP connection to its peer.
func (p Proc) tcpPeers(pid int) map[int]string {
	byInode := map[uint64]string{}
	for _, name := range []string{"net/tcp", "net/tcp6"} {
		_ = readLines(p.procPath(pid, name), func(line []byte) bool {
			if c, ok := parseConnection(line); ok {
				byInode[c.inode] = c.peer
			}
			return true
		}) // a kernel without IPv6 has no tcp6
	}
	found := map[int]string{}
	fds, err := listNumbers(p.procPath(pid, "fd"))
	if err != nil || len(byInode) == 0 {
		return found
	}
	for _, fd := range fds {
		if peer, ok := byInode[p.socketInode(pid, fd)]; ok {
			found[fd] = peer
		}
	}
	return found
}

// socketInode is the inode of the socket of a descriptor, or 0.
func (p Proc) socketInode(pid, fd int) uint64 {
	var room [64]byte
	n, err := unix.Readlink(p.procPath(pid, "fd/"+strconv.Itoa(fd)), room[:])
	if err != nil {
		return 0
	}
	digits, ok := strings.CutPrefix(string(room[:n]), "socket:[")
	if !ok {
		return 0
	}
	inode, _ := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 64) // 0 is no inode
	return inode
}
