package local

import (
	"sbx/internal/providers/local/supervisor"
	"sbx/internal/providers/local/wire"
)

// Reexec runs the process as a supervisor or stub when its first argument says
// that it is one, and returns the exit status. It is called before anything
// else in main, so that those processes stay small.
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
