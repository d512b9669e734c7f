package identity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBirth says that a text was not written by Birth, or that it is of another PID
// namespace: it is no evidence of which process runs here.

// birth identifies a process without its PID, in the PID namespace of that PID: containers
// of one machine share the boot and not the PIDs.
type birth struct {
	boot      string
	namespace uint64 // 0 where there are none
	ticks     uint64
	inode     uint64
}

// Birth is a short text that distinguishes a process from every other one with its PID, for
// callers that store no Process: boot, PID namespace, start time and pidfd inode. Errors as
// of Of.
func Birth(pid int) (string, error) {
	p, err := Of(pid)
	if err != nil {
		return "", err
	}
	space, err := namespace()
	if err != nil {
		return "", err
	}
	return birth{p.BootID, space, p.StartTicks, p.PidfdInode}.String(), nil
}

// Lives reports whether the process with this PID and birth still runs; false for a zombie,
// for another process with that PID and for one of an earlier boot. An error (ErrBirth among
// them) means that it is unknown, never that it is dead. PID and birth must be of this
// machine: another machine's boot differs, and the process would count as dead.
func Lives(pid int, text string) (bool, error) {
	b, err := parseBirth(text)
	if err != nil {
		return false, err
	}
	if pid <= 0 {
		return false, fmt.Errorf("%d is no process id", pid)
	}
	self, err := Self()
	switch {
	case err != nil:
		return false, err
	case self.BootID != b.boot:
		return false, nil
	}
	space, err := namespace()
	switch {
	case err != nil:
		return false, err
	case space != b.namespace:
		return false, fmt.Errorf("%w: its number counts in another PID namespace", ErrBirth)
	}
	return Process{BootID: b.boot, PID: pid, StartTicks: b.ticks, PidfdInode: b.inode}.Alive()
}

// String formats what parseBirth reads.
func (b birth) String() string {
	n := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return strings.Join([]string{b.boot, n(b.namespace), n(b.ticks), n(b.inode)}, "/")
}

// parseBirth accepts only what String writes.
func parseBirth(text string) (birth, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 || parts[0] == "" {
		return birth{}, fmt.Errorf("%w: %q is no birth", ErrBirth, text)
	}
	b := birth{boot: parts[0]}
	for i, to := range []*uint64{&b.namespace, &b.ticks, &b.inode} {
		n, err := strconv.ParseUint(parts[i+1], 10, 64)
		if err != nil {
			return birth{}, fmt.Errorf("%w: %q is no birth", ErrBirth, text)
		}
		*to = n
	}
	if b.String() != text {
		return birth{}, fmt.Errorf("%w: %q is no birth", ErrBirth, text)
	}
	return b, nil
}
