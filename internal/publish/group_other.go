//go:build !unix

package publish

import (
	"os"
	"strconv"
	"syscall"

	"sbx/internal/sandbox"
)

// Process groups do not exist on this platform: only the program itself is ended.
func ownGroup() *syscall.SysProcAttr { return nil }

func terminateGroup(leader int) { killGroup(leader) }

func killGroup(leader int) {
	if p, err := os.FindProcess(leader); err == nil {
		_ = p.Kill() // it fails only when the process has ended
	}
}

func groupLives(int) bool { return false }

// exitOf has the code alone: there are no signals on this platform.
func exitOf(state *os.ProcessState) sandbox.Exit {
	code := state.ExitCode()
	return sandbox.Exit{Code: &code, Raw: strconv.Itoa(code)}
}
