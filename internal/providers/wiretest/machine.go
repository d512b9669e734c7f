package wiretest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Machine runs the commands that a fake is asked to run, as real processes of
// this machine: in a folder of their own that is HOME and the working
// directory, each in its own process group. All are killed with the test.
type Machine struct {
	Home string
	mark string // stands in the environment of everything it has started

	mu   sync.Mutex
	dead bool
	runs []*Running
}

// Process is a program to run.
type Process struct {
	Args   []string
	Env    []string // added to the machine's own
	Dir    string   // "" = Home
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// ErrDead says that the machine has been stopped.
var ErrDead = errors.New("the machine is dead")

// NewMachine makes a machine that is stopped with the test.
func NewMachine(t T) *Machine {
	home, err := os.MkdirTemp("", "machine")
	if err != nil {
		t.Errorf("machine: %v", err)
		t.FailNow()
	}
	m := &Machine{Home: home, mark: "SBX_MACHINE=" + rand.Text()}
	t.Cleanup(func() {
		m.Stop()
		_ = os.RemoveAll(home)
	})
	return m
}

// Start runs a program and does not wait for it. A missing one is
// exec.ErrNotFound or fs.ErrNotExist.
func (m *Machine) Start(p Process) (*Running, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, ErrDead
	}
	c := exec.Command(p.Args[0], p.Args[1:]...) //nolint:noctx // the machine ends it, not a caller
	path := os.Getenv("PATH")                   //nolint:forbidigo // the tools of a sandbox are those of this machine
	c.Env = append([]string{m.mark, "HOME=" + m.Home, "PATH=" + path}, p.Env...)
	if c.Dir = p.Dir; c.Dir == "" {
		c.Dir = m.Home
	}
	c.Stdin, c.Stdout, c.Stderr = p.Stdin, p.Stdout, p.Stderr
	c.SysProcAttr = ownGroup()
	if err := c.Start(); err != nil {
		return nil, err
	}
	r := &Running{PID: c.Process.Pid, done: make(chan struct{})}
	m.runs = append(m.runs, r)
	go func() {
		_ = c.Wait() // the state says it all
		r.state = c.ProcessState
		close(r.done)
	}()
	return r, nil
}

// Stop kills everything that runs on the machine, daemons too, and starts
// nothing any more.
func (m *Machine) Stop() {
	m.mu.Lock()
	m.dead = true
	runs := m.runs
	m.mu.Unlock()
	for _, r := range runs {
		r.KillGroup()
	}
	for range 20 { // what is being forked appears in a later look
		if len(m.strays()) == 0 {
			break
		}
		for _, pid := range m.strays() {
			_ = kill(pid, syscall.SIGKILL)
		}
	}
	for _, r := range runs {
		<-r.done
	}
}

// strays finds what carries the machine's mark.
func (m *Machine) strays() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is well-formed
	var pids []int
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(text, []byte(m.mark)) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Running is a program of a Machine.
type Running struct {
	PID   int
	done  chan struct{}
	state *os.ProcessState
}

// Done is closed when the program has ended and its streams are read.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait gives the exit code, or -1 and the signal that ended the program.
func (r *Running) Wait() (code int, signal syscall.Signal) {
	<-r.done
	if s, ok := r.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -1, s.Signal()
	}
	return r.state.ExitCode(), 0
}

// Signal reaches the program alone, not its children.
func (r *Running) Signal(s syscall.Signal) error {
	select {
	case <-r.done:
		return os.ErrProcessDone
	default:
		return kill(r.PID, s)
	}
}

// KillGroup kills the program and its children.
func (r *Running) KillGroup() {
	select {
	case <-r.done:
	default:
		_ = kill(-r.PID, syscall.SIGKILL)
	}
}

// KillChild kills the newest child of the program; false without one.
func (r *Running) KillChild() bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(r.PID) + "/task/" + strconv.Itoa(r.PID) + "/children")
	children := strings.Fields(string(text))
	if err != nil || len(children) == 0 {
		return false
	}
	pid, err := strconv.Atoi(children[len(children)-1])
	return err == nil && kill(pid, syscall.SIGKILL) == nil
}
