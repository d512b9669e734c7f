package identity

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The two ways in which a recorded process no longer exists. Both mean that it has ended;
// they differ in whether its PID is in use.
var (
	// ErrDead says that no process has this identity: the PID is free, its process has
	// exited (a zombie counts as dead), or the host was booted since.
	ErrDead = errors.New("the process has ended")
	// ErrForeign says that the PID belongs to another process now.
	ErrForeign = errors.New("the process id belongs to another process now")
)

// Process is the identity of one process. A PID is reused, and even PID and start time are
// not unique: the start time has a resolution of 10 ms, within which a PID can come back.
type Process struct {
	BootID     string `json:"boot_id"`
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"` // since boot, in 1/100 s; on macOS microseconds since 1970
	PidfdInode uint64 `json:"pidfd_inode"` // unique within a boot; 0 = the kernel is older than 6.9 or not Linux
}

// Self is the identity of the calling process.
func Self() (Process, error) { return Of(os.Getpid()) }

// Of is the identity of an existing process, possibly a zombie. The caller must know that the
// PID is still that of the intended process: true for a child that has not been waited for.
// Errors: ErrDead, ErrForeign (the PID is a thread's), or that the identity cannot be read.
func Of(pid int) (Process, error) {
	at, err := openPin(pid)
	if err != nil {
		return Process{}, err
	}
	defer at.closePin()
	return at.readIdentity(pid)
}

// Alive reports whether this process still runs: same boot, same PID, same inode (or start
// time where either side has none), and not exited. A zombie is dead; a process of which only
// the main thread has ended is not. An error means that it is unknown, never that it is dead.
func (p Process) Alive() (bool, error) {
	at, err := openPin(p.PID)
	if err == nil {
		defer at.closePin()
		err = at.verifyIdentity(p)
	}
	if errors.Is(err, ErrDead) || errors.Is(err, ErrForeign) {
		return false, nil
	}
	return err == nil, err
}

// Age is how long ago the process started, by a monotonic clock. False where that is unknown,
// as for a process of another boot.
func (p Process) Age() (time.Duration, bool) {
	up, known := sinceBoot()
	self, err := Self()
	if !known || err != nil || self.BootID != p.BootID {
		return 0, false
	}
	age := up - time.Duration(p.StartTicks)*(time.Second/TicksPerSecond)
	return age, age >= 0
}

// sameAs compares two identities that were read in one boot.
func (p Process) sameAs(now Process) error {
	switch {
	case p.BootID != now.BootID:
		return ErrDead
	case p.PID != now.PID:
		return ErrForeign
	case p.PidfdInode != 0 && now.PidfdInode != 0:
		return foreignUnless(p.PidfdInode == now.PidfdInode)
	}
	return foreignUnless(p.StartTicks == now.StartTicks)
}

func foreignUnless(same bool) error {
	if same {
		return nil
	}
	return ErrForeign
}

// ErrBirth says that a text was not written by Birth, or that it is of another PID
// namespace: it is no evidence of which process runs here.
var ErrBirth = errors.New("the recorded process identity cannot be compared with the running process")

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
	space, err := pidNamespace()
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
		return false, fmt.Errorf("%d is not a process id", pid)
	}
	self, err := Self()
	switch {
	case err != nil:
		return false, err
	case self.BootID != b.boot:
		return false, nil
	}
	space, err := pidNamespace()
	switch {
	case err != nil:
		return false, err
	case space != b.namespace:
		return false, fmt.Errorf("%w: its id belongs to another PID namespace", ErrBirth)
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
		return birth{}, fmt.Errorf("%w: %q is not a start time", ErrBirth, text)
	}
	b := birth{boot: parts[0]}
	for i, to := range []*uint64{&b.namespace, &b.ticks, &b.inode} {
		n, err := strconv.ParseUint(parts[i+1], 10, 64)
		if err != nil {
			return birth{}, fmt.Errorf("%w: %q is not a start time", ErrBirth, text)
		}
		*to = n
	}
	if b.String() != text {
		return birth{}, fmt.Errorf("%w: %q is not a start time", ErrBirth, text)
	}
	return b, nil
}
