package identity

import (
	"errors"
	"os"
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
	at, err := pinned(pid)
	if err != nil {
		return Process{}, err
	}
	defer at.close()
	return at.identify(pid)
}

// Alive reports whether this process still runs: same boot, same PID, same inode (or start
// time where either side has none), and not exited. A zombie is dead; a process of which only
// the main thread has ended is not. An error means that it is unknown, never that it is dead.
func (p Process) Alive() (bool, error) {
	at, err := pinned(p.PID)
	if err == nil {
		defer at.close()
		err = at.verify(p)
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
