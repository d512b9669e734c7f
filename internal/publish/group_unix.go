//go:build unix

package publish

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// onlyZombies reports whether all processes of a group are dead and not yet reaped: PID 1
// of a container may do that late or never. A group without entries in /proc, as on
// macOS, counts as living.
func onlyZombies(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	dead := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		state, of := stateAndGroup(string(text))
		switch {
		case of != group:
		case state != "Z" && state != "X":
			return false
		default:
			dead++
		}
	}
	return dead > 0
}

// stateAndGroup parses a line of /proc/PID/stat: "pid (name) state ppid group ...". The
// name may hold any character, including parentheses.
func stateAndGroup(stat string) (state string, group int) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return "", 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0], group
}
