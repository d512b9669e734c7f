//go:build unix

package publish

import (
	"os"
	"strconv"
	"syscall"

	"sbx/internal/sandbox"
)

// ownGroup starts a program in a session of its own: Ctrl-C in the terminal does not reach
// it, and it has no terminal for prompts.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func terminateGroup(leader int) { signalGroup(leader, syscall.SIGTERM) }

func killGroup(leader int) { signalGroup(leader, syscall.SIGKILL) }

// groupLives reports whether any process of the group can still act.
func groupLives(leader int) bool { return syscall.Kill(-leader, 0) == nil && !onlyZombies(leader) }

// signalGroup fails only when no process is left.
func signalGroup(leader int, signal syscall.Signal) { _ = syscall.Kill(-leader, signal) }

// exitOf converts an exit to sandbox.Exit: code 128+n for a death by signal n.
func exitOf(state *os.ProcessState) sandbox.Exit {
	code := state.ExitCode()
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return sandbox.Exit{Code: &code, Raw: strconv.Itoa(code)}
	}
	code = 128 + int(status.Signal())
	return sandbox.Exit{Code: &code, Raw: state.String(), Signal: signalName(status.Signal())}
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGHUP:
		return "SIGHUP"
	case syscall.SIGINT:
		return "SIGINT"
	case syscall.SIGQUIT:
		return "SIGQUIT"
	case syscall.SIGABRT:
		return "SIGABRT"
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGSEGV:
		return "SIGSEGV"
	case syscall.SIGPIPE:
		return "SIGPIPE"
	case syscall.SIGTERM:
		return "SIGTERM"
	default:
		return "signal " + strconv.Itoa(int(s))
	}
}
