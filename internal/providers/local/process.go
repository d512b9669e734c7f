package local

import (
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/supervisor"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// Reexec runs the process as a supervisor or stub when its first argument says so, and
// returns the exit status. main calls it before anything else, so that those processes stay
// small.
func Reexec(args []string) (status int, done bool) {
	if len(args) != 2 {
		return 0, false
	}
	switch args[1] {
	case wire.SupervisorArg:
		return supervisor.Run(), true
	case wire.StubArg:
		return supervisor.RunStub(), true
	}
	return 0, false
}

// Birth identifies a process of this machine among all that ever have its PID: the owner of
// a task stores it beside the PID. "" where it is unknown: no such process, or neither Linux
// nor macOS.
func Birth(pid int) string {
	birth, err := identity.Birth(pid)
	if err != nil {
		return ""
	}
	return birth
}

// Lives reports whether the process with this Birth still runs. False is proof: it has
// exited (also as a zombie), its PID belongs to another process, or the machine was booted
// again. Unknown: the birth is empty or invalid, it was taken in another PID namespace (a
// neighbouring container), or this system cannot determine it.
//
// PID and birth must be of this machine: another machine's boot differs, which reads as
// False.
func Lives(pid int, birth string) sandbox.Verdict {
	lives, err := identity.Lives(pid, birth)
	if err != nil {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(lives)
}
