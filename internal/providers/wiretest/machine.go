package wiretest

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Machine runs the commands that a fake is asked to run, as real processes of
// this machine: in a folder of their own that is HOME and the working
// directory, each in its own process group, with PATH and nothing else of the
// test's environment. It signals only what it has started: processes that carry
// its mark or stand in its folder, and the groups it has made. All are killed with
// the test.
type Machine struct {
	Home string
	mark string // stands in the environment of everything it has started

	mu   sync.Mutex
	dead bool
	runs []*Running
}

// Process is a program to run. A terminal is not offered.
type Process struct {
	Args   []string // Args[0] is looked up in PATH, or below Dir where it has a slash
	Env    []string // added to the machine's own
	Dir    string   // "" = Home
	Stdin  io.Reader
	Stdout io.Writer // one writer for both streams keeps their order
	Stderr io.Writer
}

// ErrDead says that the machine has been stopped.
var ErrDead = errors.New("the machine is dead")

// Missing says that Start found no such program, for which a shell has the code
// 127; a Dir that is not there reads alike.
func Missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// NewMachine makes a machine that is stopped with the test.
func NewMachine(t T) *Machine {
	home, err := os.MkdirTemp("", "machine")
	if err != nil {
		t.Errorf("machine: %v", err)
		t.FailNow()
	}
	m := &Machine{Home: home, mark: markVariable + rand.Text()}
	t.Cleanup(func() {
		m.Stop()
		_ = os.RemoveAll(home)
	})
	return m
}

// markVariable is the variable by which a machine knows its own.
const markVariable = "SBX_MACHINE="

// Start runs a program and does not wait for it. A missing one is
// exec.ErrNotFound or fs.ErrNotExist, one that may not be run fs.ErrPermission; a
// machine that was stopped gives ErrDead.
func (m *Machine) Start(p Process) (*Running, error) {
	if len(p.Args) == 0 {
		return nil, exec.ErrNotFound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, ErrDead
	}
	c, err := m.command(p)
	if err != nil {
		return nil, err
	}
	var stdin io.WriteCloser
	if p.Stdin != nil {
		if stdin, err = c.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	r := &Running{PID: c.Process.Pid, machine: m, process: c.Process, done: make(chan struct{})}
	m.runs = append(m.runs, r)
	if stdin != nil {
		go func() { // a reader that never ends does not hide the end of the program
			_, _ = io.Copy(stdin, p.Stdin)
			_ = stdin.Close()
		}()
	}
	go func() {
		_ = c.Wait() // the state says it all
		r.state = c.ProcessState
		close(r.done)
	}()
	return r, nil
}

func (m *Machine) command(p Process) (*exec.Cmd, error) {
	file := p.Args[0]
	if filepath.Base(file) == file {
		found, err := exec.LookPath(file)
		if err != nil {
			return nil, err
		}
		file = found
	}
	path := os.Getenv("PATH") //nolint:forbidigo // the tools of a sandbox are those of this machine
	c := &exec.Cmd{
		Path: file, Args: p.Args, Dir: p.Dir, Stdout: p.Stdout, Stderr: p.Stderr, SysProcAttr: ownGroup(),
		Env: append([]string{"HOME=" + m.Home, "PATH=" + path}, append(p.Env, m.mark)...),
	}
	if c.Dir == "" {
		c.Dir = m.Home
	}
	return c, nil
}

// stopTime is how long Stop goes on looking for what is being forked or dying.
const stopTime = 5 * time.Second

// Stop is the machine's death: it kills everything that runs on it, daemons too,
// and starts nothing any more. It returns when nothing is left.
func (m *Machine) Stop() {
	m.mu.Lock()
	m.dead = true
	runs := m.runs
	m.mu.Unlock()
	over := time.NewTimer(stopTime)
	defer over.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for _, r := range runs {
		r.KillGroup()
	}
	for left := m.living(); len(left) > 0; left = m.living() {
		for _, p := range left {
			_ = kill(p.pid, syscall.SIGKILL)
		}
		select {
		case <-again.C:
		case <-over.C:
			return
		}
	}
	for _, r := range runs {
		select {
		case <-r.done:
		case <-over.C:
			return
		}
	}
}

// Processes is how many processes run on the machine, daemons too.
func (m *Machine) Processes() int { return len(m.living()) }
