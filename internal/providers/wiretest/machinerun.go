package wiretest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Running is a program of a Machine.
type Running struct {
	PID     int
	machine *Machine
	process *os.Process
	done    chan struct{}
	state   *os.ProcessState
}

// Done is closed when the program has ended and its streams are closed: a child
// that keeps one of them keeps the end back, as it does for a server that runs
// commands like this.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for Done and gives the exit code, or -1 and the signal that ended
// the program.
func (r *Running) Wait() (code int, signal syscall.Signal) {
	<-r.done
	if s, ok := r.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -1, s.Signal()
	}
	return r.state.ExitCode(), 0
}

// Signal reaches the program alone, not its children; os.ErrProcessDone when it
// has ended.
func (r *Running) Signal(s syscall.Signal) error { return r.process.Signal(s) }

// SignalChild reaches the newest child of the program alone; false without one.
func (r *Running) SignalChild(s syscall.Signal) bool {
	children := slices.DeleteFunc(r.machine.living(), func(p process) bool { return p.parent != r.PID })
	if len(children) == 0 {
		return false
	}
	newest := slices.MaxFunc(children, func(a, b process) int {
		if a.start != b.start {
			return int(a.start - b.start)
		}
		return a.pid - b.pid
	})
	return kill(newest.pid, s) == nil
}

// KillChild is SignalChild with SIGKILL.
func (r *Running) KillChild() bool { return r.SignalChild(syscall.SIGKILL) }

// KillGroup kills the program and those of its children that have not left its
// process group.
func (r *Running) KillGroup() {
	if r.process.Signal(syscall.Signal(0)) == nil { // as long as it is there, the group's number is its own
		_ = kill(-r.PID, syscall.SIGKILL)
	}
	for _, p := range r.machine.living() {
		if p.group == r.PID {
			_ = kill(p.pid, syscall.SIGKILL)
		}
	}
}

// process is one of a machine, as the kernel describes it.
type process struct {
	pid, parent, group int
	start              int64 // in ticks since boot
}

// living finds what carries the machine's mark, or has thrown its environment away
// and stands in the machine's folder, and is not only waiting for its parent to
// take note of its end. Empty where there is no /proc.
func (m *Machine) living() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	var all []process
	for _, dir := range dirs {
		if !m.owns(dir) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		if p, ok := parseStat(string(text)); ok && p.pid != os.Getpid() {
			all = append(all, p)
		}
	}
	return all
}

// owns looks at a process by its folder in /proc. The name of Home is as random
// as the mark.
func (m *Machine) owns(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err == nil && bytes.Contains(append(text, 0), []byte(m.mark+"\x00")) {
		return true
	}
	place, err := os.Readlink(filepath.Join(dir, "cwd"))
	return err == nil && (place == m.Home || strings.HasPrefix(place, m.Home+"/") || place == m.Home+" (deleted)")
}

// parseStat reads /proc/PID/stat; false for one that has died. The name stands in
// brackets and may hold anything.
func parseStat(text string) (process, bool) {
	pid, rest, _ := strings.Cut(text, " ")
	end := strings.LastIndexByte(rest, ')')
	fields := strings.Fields(rest[end+1:])
	if end < 0 || len(fields) < 20 || strings.Contains("ZXx", fields[0]) {
		return process{}, false
	}
	var n [4]int64
	for i, word := range []string{pid, fields[1], fields[2], fields[19]} {
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return process{}, false
		}
		n[i] = v
	}
	return process{pid: int(n[0]), parent: int(n[1]), group: int(n[2]), start: n[3]}, true
}
