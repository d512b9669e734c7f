package local

import (
	"sbx/internal/providers/local/identity"
	"sbx/internal/sandbox"
)

// Birth tells a process of this machine from every other one that ever has its
// number: what the owner of a task leaves behind beside its PID. "" where that
// cannot be known: no such process, or neither Linux nor macOS.
func Birth(pid int) string {
	birth, err := identity.Birth(pid)
	if err != nil {
		return ""
	}
	return birth
}

// Lives says whether the very process that Birth was asked about still runs.
// False is proof: it has exited (a zombie has), its number belongs to another
// process, or the machine was booted anew. Unknown: the birth is empty or no
// birth, it was taken in another PID namespace (a container beside this one), or
// this system cannot tell.
//
// Number and birth are of this machine. Another machine's are not to be asked for:
// its boot is not this one, which reads as False.
func Lives(pid int, birth string) sandbox.Verdict {
	lives, err := identity.Lives(pid, birth)
	if err != nil {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(lives)
}
