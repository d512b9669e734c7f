package wiretest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sbx/internal/poll"
)

// Machine runs the commands of a fake as real processes of this host: in a folder of its own as
// HOME and working directory, each in its own process group, with PATH and nothing else of the
// test's environment. It signals only its own processes: those with its mark or in its folder,
// and the groups that it has made. All are killed when the test ends.
type Machine struct {
	Home string
	mark string // in the environment of each process
	bin  string // holds `sh`, first in PATH; "" = PATH is the host's

	mu   sync.Mutex
	dead bool
	runs []*Running
}

// Process is a program to run. A terminal is not offered.
type Process struct {
	Args   []string // Args[0] is found in PATH, or below Dir where it has a slash
	Env    []string // added to the machine's own
	Dir    string   // "" = Home
	Bin    string   // a folder of programs before those of PATH; "" = none
	Stdin  io.Reader
	Stdout io.Writer // one writer for both streams keeps their order
	Stderr io.Writer
}

// AddEnv adds variables.
func (p *Process) AddEnv(sets ...map[string]string) {
	for _, set := range sets {
		for key, value := range set {
			p.Env = append(p.Env, key+"="+value)
		}
	}
}

// ErrDead is the error of Start after Stop.
var ErrDead = errors.New("the machine is dead")

// Missing says that Start found no such program, for which a shell exits with 127, or no such
// Dir.
func Missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// NewMachine makes a machine that is stopped with the test. A shell of this host is its `sh`, and
// the /bin/sh of Start; "" = those of the host.
func NewMachine(t T, shell string) *Machine {
	home, err := os.MkdirTemp("", "machine")
	if err != nil {
		t.Errorf("machine: %v", err)
		t.FailNow()
	}
	m := &Machine{Home: home, mark: markVariable + rand.Text()}
	if err := m.useShell(shell); err != nil {
		t.Errorf("machine: %v", err)
		t.FailNow()
	}
	t.Cleanup(func() {
		m.Stop()
		_ = os.RemoveAll(home)
	})
	return m
}

// markVariable is the variable with the mark of a machine.
const markVariable = "SBX_MACHINE="

// Start starts a program. A missing one is exec.ErrNotFound or fs.ErrNotExist, one that may not
// be run fs.ErrPermission; after Stop it is ErrDead.
func (m *Machine) Start(p Process) (*Running, error) {
	if len(p.Args) == 0 {
		return nil, exec.ErrNotFound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return nil, ErrDead
	}
	c, err := m.newCommand(p)
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
		go func() { // the program may end before its stdin
			_, _ = io.Copy(stdin, p.Stdin)
			_ = stdin.Close()
		}()
	}
	go func() {
		_ = c.Wait() // the state has the result
		r.state = c.ProcessState
		close(r.done)
	}()
	return r, nil
}

func (m *Machine) newCommand(p Process) (*exec.Cmd, error) {
	file := p.Args[0]
	switch {
	case m.bin != "" && (file == "sh" || file == "/bin/sh"):
		file = filepath.Join(m.bin, "sh")
	case filepath.Base(file) == file:
		found, err := exec.LookPath(file)
		if err != nil {
			return nil, err
		}
		file = found
	}
	path := os.Getenv("PATH") //nolint:forbidigo // the tools of a sandbox are those of this machine
	for _, dir := range []string{m.bin, p.Bin} {
		if dir != "" {
			path = dir + string(os.PathListSeparator) + path
		}
	}
	c := &exec.Cmd{
		Path: file, Args: p.Args, Dir: p.Dir, Stdout: p.Stdout, Stderr: p.Stderr, SysProcAttr: ownGroup(),
		Env: append([]string{"HOME=" + m.Home, "PATH=" + path}, append(p.Env, m.mark)...),
	}
	if c.Dir == "" {
		c.Dir = m.Home
	}
	return c, nil
}

// stopTimeout is how long Stop looks for processes that are being forked or are dying.
const stopTimeout = 5 * time.Second

// Stop kills all processes of the machine, daemons too, and prevents new ones. It returns when
// none is left.
func (m *Machine) Stop() {
	m.mu.Lock()
	m.dead = true
	runs := m.runs
	m.mu.Unlock()
	limit := time.After(stopTimeout)
	if len(runs) == 0 {
		return
	}
	for _, r := range runs {
		_ = r.killLivingGroup()
	}
	pauses := poll.NewBackoff(2*time.Millisecond, 50*time.Millisecond) // each look reads all of /proc
	for left := m.liveProcesses(); len(left) > 0; left = m.liveProcesses() {
		for _, p := range left {
			_ = killProcess(p.pid, syscall.SIGKILL)
		}
		select {
		case <-pauses.After():
		case <-limit:
			return
		}
	}
	for _, r := range runs {
		select {
		case <-r.done:
		case <-limit:
			return
		}
	}
}

// Processes is the number of running processes, daemons included.
func (m *Machine) Processes() int { return len(m.liveProcesses()) }

// Running is a program of a Machine.
type Running struct {
	PID     int
	machine *Machine
	process *os.Process
	done    chan struct{}
	state   *os.ProcessState
}

// Done is closed when the program has ended and its streams are closed. A child that keeps one
// open delays that, as it does for a server that runs commands.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits for Done and returns the exit code, or -1 and the signal that ended the program.
func (r *Running) Wait() (code int, signal syscall.Signal) {
	<-r.done
	if s, ok := r.state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return -1, s.Signal()
	}
	return r.state.ExitCode(), 0
}

// Signal signals the program without its children; os.ErrProcessDone when it has ended.
func (r *Running) Signal(s syscall.Signal) error { return r.process.Signal(s) }

// SignalChild signals the newest child of the program; false without one.
func (r *Running) SignalChild(s syscall.Signal) bool {
	children := slices.DeleteFunc(r.machine.liveProcesses(), func(p process) bool { return p.parent != r.PID })
	if len(children) == 0 {
		return false
	}
	newest := slices.MaxFunc(children, func(a, b process) int {
		if a.start != b.start {
			return int(a.start - b.start)
		}
		return a.pid - b.pid
	})
	return killProcess(newest.pid, s) == nil
}

// HasEnded says that Done is closed.
func (r *Running) HasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// KillChild is SignalChild with SIGKILL.
func (r *Running) KillChild() bool { return r.SignalChild(syscall.SIGKILL) }

// KillGroup kills the program and its children in its process group.
func (r *Running) KillGroup() {
	if r.killLivingGroup() {
		return
	}
	for _, p := range r.machine.liveProcesses() {
		if p.group == r.PID {
			_ = killProcess(p.pid, syscall.SIGKILL)
		}
	}
}

// killLivingGroup is KillGroup while the program exists: no other group has its number then.
func (r *Running) killLivingGroup() bool {
	return r.process.Signal(syscall.Signal(0)) == nil && killProcess(-r.PID, syscall.SIGKILL) == nil
}

type process struct {
	pid, parent, group int
	start              int64 // in ticks since boot
}

// liveProcesses finds the processes with the machine's mark, or without an environment and in the
// machine's folder, that are no zombies. Empty without /proc.
func (m *Machine) liveProcesses() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	var all []process
	for _, dir := range dirs {
		if !m.ownsProcess(dir) {
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

// ownsProcess checks a process by its folder in /proc. The name of Home is as random as the
// mark.
func (m *Machine) ownsProcess(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err == nil && bytes.Contains(append(text, 0), []byte(m.mark+"\x00")) {
		return true
	}
	place, err := os.Readlink(filepath.Join(dir, "cwd"))
	return err == nil && (place == m.Home || strings.HasPrefix(place, m.Home+"/") || place == m.Home+" (deleted)")
}

// parseStat parses /proc/PID/stat; false for a zombie. The name is in brackets and may have any
// character.
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

// Guests are the programs that scripts of sbx have started on the machine; their process ids are
// in files of its folder. Only Signal and KillChild may be used: Done is never closed.
func (m *Machine) Guests() []*Running {
	files, _ := filepath.Glob(filepath.Join(m.Home, ".sbx", "runs", "*", "pid")) // the pattern is well-formed
	var all []*Running
	for _, f := range files {
		text, err := os.ReadFile(f)
		words := strings.Fields(string(text))
		if err != nil || len(words) == 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(f), "code")); err == nil {
			continue
		}
		pid, err := strconv.Atoi(words[0])
		if err != nil {
			continue
		}
		for _, p := range m.liveProcesses() {
			if process, err := os.FindProcess(pid); p.pid == pid && err == nil {
				all = append(all, &Running{PID: pid, machine: m, process: process, done: make(chan struct{})})
			}
		}
	}
	return all
}
