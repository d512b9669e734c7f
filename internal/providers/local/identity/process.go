package identity

import (
	"errors"
	"os"
	"time"
)

// The two ways in which a recorded process is no more. Both mean that it has
// ended; they differ in who owns its number now.
var (
	// ErrDead says that nobody runs under this identity: the number is free,
	// its process has exited (a zombie counts as dead), or the host was booted
	// since.
	ErrDead = errors.New("the process has ended")
	// ErrForeign says that the number belongs to another process now.
	ErrForeign = errors.New("the process id belongs to another process now")
)

// Process is the identity of one process. A number alone is reused, and even
// number and start time are not unique: a start time is counted in ticks of
// 10 ms, and a number can come back within one.
type Process struct {
	BootID     string `json:"boot_id"`
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"` // since boot, in 1/100 s; on macOS microseconds since 1970
	PidfdInode uint64 `json:"pidfd_inode"` // unique within a boot; 0 = the kernel is older than 6.9 or not Linux
}

// Self is the identity of the calling process.
func Self() (Process, error) { return Of(os.Getpid()) }

// Of is the identity of a process that exists, be it a zombie. Who calls it has
// to know that the number is still the one that is meant: true for a child that
// is not waited for yet. Errors: ErrDead, ErrForeign (the number is a thread's),
// or that the identity cannot be read.
func Of(pid int) (Process, error) {
	at, err := pinned(pid)
	if err != nil {
		return Process{}, err
	}
	defer at.close()
	return at.identify(pid)
}

// Alive says whether this very process still runs: same boot, same number, same
// inode (or start time where either side has none), and not exited. A zombie is
// dead; a process whose main thread alone has ended is not. An error means that
// it cannot be known, never that it is dead.
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

// Age is how long ago the process started, by a clock that nobody sets: a wall
// clock that jumps makes nothing older. False where that is unknown, as for a
// process of another boot.
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
