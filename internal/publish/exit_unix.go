//go:build unix

package publish

import (
	"os"
	"strconv"
	"syscall"

	"sbx/internal/sandbox"
)

// exitOf spells an exit as sandbox.Exit does: 128+n for a death by signal n.
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
