package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// memoryRoot is where containers have their control group of memory; a machine without it has no limits.
const memoryRoot = "/sys/fs/cgroup/memory"

// container is a main program in process ids of its own, so that all it has started ends with it.
type container struct {
	home, group string // group is the name of its control groups; "" = none
	env         []string
	cmd         *exec.Cmd
	log         *logFile
	began       time.Time
	done        chan struct{} // closed when the fields below are set
	code        int
	oom         bool
}

// newContainer starts the program of a container.
func (k *kubelet) newContainer(p *corev1.Pod, spec corev1.Container) (*container, error) {
	c := &container{home: filepath.Join(k.dir, string(p.UID)+"-"+spec.Name), began: time.Now(), done: make(chan struct{}), log: newLog()}
	if err := os.MkdirAll(c.home, 0o700); err != nil {
		return nil, err
	}
	c.limit("kube-"+string(p.UID)+"-"+spec.Name, spec.Resources.Limits.Memory().Value())
	c.env = []string{"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "HOSTNAME=" + p.Name}
	for _, v := range spec.Env {
		c.env = append(c.env, v.Name+"="+v.Value)
	}
	args := append(append([]string{}, spec.Command...), spec.Args...)
	if len(args) == 0 {
		args = []string{"sleep", "infinity"}
	}
	c.cmd = exec.Command("/bin/sh", append([]string{"-c", c.enter() + `mount --make-rprivate / && mount -t proc proc /proc && exec "$@"`, "sh"}, args...)...)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = c.env, c.home, c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go c.wait()
	return c, nil
}

// limit makes the control groups, with a limit of memory in bytes; 0 = none.
func (c *container) limit(name string, bytes int64) {
	if os.MkdirAll(filepath.Join(memoryRoot, name), 0o755) != nil || os.MkdirAll(filepath.Join(cpuRoot, name), 0o755) != nil {
		return
	}
	c.group = name
	if bytes > 0 {
		_ = os.WriteFile(filepath.Join(memoryRoot, name, "memory.limit_in_bytes"), []byte(strconv.FormatInt(bytes, 10)), 0o600)
	}
}

// enter is the beginning of a shell that joins the control groups.
func (c *container) enter() string {
	if c.group == "" {
		return ""
	}
	return "echo 0 >" + filepath.Join(memoryRoot, c.group, "cgroup.procs") + " && echo 0 >" + filepath.Join(cpuRoot, c.group, "cgroup.procs") + " && "
}

func (c *container) wait() {
	_ = c.cmd.Wait()
	status, _ := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	c.code = status.ExitStatus()
	if status.Signaled() {
		c.code = 128 + int(status.Signal())
	}
	if c.group != "" {
		text, err := os.ReadFile(filepath.Join(memoryRoot, c.group, "memory.oom_control"))
		c.oom = err == nil && c.code == 137 && !strings.Contains(string(text), "oom_kill 0\n")
		for range 20 { // what was run beside the main program dies with it, and some moments later
			memory, cpu := os.Remove(filepath.Join(memoryRoot, c.group)), os.Remove(filepath.Join(cpuRoot, c.group))
			if (memory == nil || os.IsNotExist(memory)) && (cpu == nil || os.IsNotExist(cpu)) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	c.log.close()
	close(c.done)
}

func (c *container) kill() { _ = c.cmd.Process.Kill() }

// end sends TERM, and KILL when the grace is over.
func (c *container) end(over <-chan struct{}) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-over:
		c.kill()
		<-c.done
	}
}

// command is a command inside, or why the runtime of a node would not run it.
func (c *container) command(args []string) (*exec.Cmd, error) {
	select {
	case <-c.done:
		return nil, fmt.Errorf("container not running")
	default:
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		why := "executable file not found in $PATH"
		if os.IsPermission(err) || strings.Contains(args[0], "/") && !os.IsNotExist(err) {
			why = "permission denied"
		} else if strings.Contains(args[0], "/") {
			why = "stat " + args[0] + ": no such file or directory"
		}
		return nil, fmt.Errorf("OCI runtime exec failed: exec failed: unable to start container process: exec: %q: %s: unknown", args[0], why)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", c.enter() + `exec nsenter -t "$0" -p -m -- "$@"`, strconv.Itoa(c.cmd.Process.Pid)}, args...)...)
	cmd.Env, cmd.Dir = c.env, c.home
	return cmd, nil
}

// logFile is the log of a container: lines with their times.
type logFile struct {
	mu     sync.Mutex
	more   *sync.Cond
	lines  []logLine
	part   []byte
	closed bool
}

type logLine struct {
	at   time.Time
	text string
}

func newLog() *logFile {
	l := &logFile{}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		line, rest, found := strings.Cut(string(l.part), "\n")
		if !found {
			break
		}
		l.lines = append(l.lines, logLine{time.Now(), line})
		l.part = []byte(rest)
	}
	l.more.Broadcast()
	return len(p), nil
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.lines = append(l.lines, logLine{time.Now(), string(l.part)})
		l.part = nil
	}
	l.closed = true
	l.more.Broadcast()
}

// wake lets a reader see that it is to stop.
func (l *logFile) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more.Broadcast()
}
