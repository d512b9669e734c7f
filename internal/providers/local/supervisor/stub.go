//go:build unix

package supervisor

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/wire"
)

// stub is the sandbox's PID 1: it starts programs inside the limits and reaps their orphans.
type stub struct {
	order    wire.StubOrder
	launcher *launcher
	report   *os.File
	// stdout and stderr are the program's; they stay open as long as the stub lives.
	stdout, stderr *os.File

	mu           sync.Mutex
	waiting      map[int]chan syscall.WaitStatus // programs whose exit is awaited
	childStarted chan struct{}                   // signalled when there is a child to wait for
}

// RunStub is the main function of the stub. It ends with the program, unless the sandbox
// lingers: in a PID namespace that ends everything else; without one, the stub kills what is
// left.
func RunStub() int {
	runtime.LockOSThread() // keeps the first thread out of the launcher's cgroups
	debug.SetGCPercent(20)
	s := &stub{
		report:       wire.File(wire.StubReportFD, "report"),
		stdout:       os.NewFile(1, "stdout"),
		stderr:       os.NewFile(2, "stderr"),
		waiting:      map[int]chan syscall.WaitStatus{},
		childStarted: make(chan struct{}, 1),
	}
	order := wire.File(wire.StubOrderFD, "order")
	if err := wire.NewReader(order).Next(&s.order); err != nil {
		return s.reportFailure(err)
	}
	order.Close()
	socket := wire.File(wire.StubSocketFD, "socket")
	go s.dieWithSupervisor(wire.File(wire.StubLifeFD, "life"))

	if err := setUpStub(s.order.Isolated); err != nil {
		return s.reportFailure(&wire.Fail{Kind: wire.FailIsolation, Message: err.Error()})
	}
	launcher, err := newLauncher(s.order)
	if err != nil {
		return s.reportFailure(err)
	}
	s.launcher = launcher
	ended, err := s.startProgram()
	if err != nil {
		return s.reportFailure(err)
	}
	go s.reapChildren()
	go s.serveCommands(socket)
	e := exitReport(<-ended)
	if !s.order.Isolated && !s.order.KeepAfterExit {
		e.Killed = killDescendants()
	}
	if err := wire.Write(s.report, wire.StubReport{Exited: &e}); err != nil {
		s.endAlone() // the supervisor is dead
	}
	if s.order.KeepAfterExit {
		select {} // its supervisor ends it
	}
	return 0
}

func (s *stub) startProgram() (<-chan syscall.WaitStatus, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pid, ended, err := s.startAndWatch(programRequest{
		argv: s.order.Argv, env: s.order.Env, dir: s.order.Dir,
		files: []*os.File{null, s.stdout, s.stderr},
	})
	if err != nil {
		return nil, err
	}
	return ended, wire.Write(s.report, wire.StubReport{Started: &wire.Started{PID: pid}})
}

// startAndWatch makes the launcher start a program and registers for its exit. The lock keeps
// the reaper from processing an exit before the registration.
func (s *stub) startAndWatch(r programRequest) (int, <-chan syscall.WaitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.launcher.startOnThread(r)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.waiting[pid] = ended
	select {
	case s.childStarted <- struct{}{}:
	default:
	}
	return pid, ended, nil
}

func exitReport(status syscall.WaitStatus) wire.Exited {
	if status.Signaled() {
		return wire.Exited{Signal: int(status.Signal())}
	}
	return wire.Exited{Code: status.ExitStatus()}
}

func (s *stub) reportFailure(err error) int {
	_ = wire.Write(s.report, wire.StubReport{Fail: wire.AsFail(err)}) // fails without a supervisor
	return 1
}

// dieWithSupervisor covers the time before the parent-death signal is armed, and systems
// without one.
func (s *stub) dieWithSupervisor(life *os.File) {
	var b [1]byte
	for {
		if _, err := life.Read(b[:]); err != nil && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	s.endAlone()
	os.Exit(1) //nolint:forbidigo // PID 1 ends here; there is nothing to unwind
}

// endAlone ends everything below a stub whose supervisor is dead, and writes the proof. In a
// namespace the stub's own death does both.
func (s *stub) endAlone() {
	if !s.order.Isolated && killAllDescendants() {
		_ = os.WriteFile(s.order.Proof, []byte("the stub ended all remaining processes of its programs\n"), 0o600) // without it the sweep reports "unknown"
	}
}

// reapChildren reaps every child that ends and passes its status to the waiting goroutine.
func (s *stub) reapChildren() {
	for {
		pid, status, left := waitAny(true)
		if !left { // orphans were children of a program before: only a start adds a child
			<-s.childStarted
			continue
		}
		s.mu.Lock()
		if c, ok := s.waiting[pid]; ok {
			delete(s.waiting, pid)
			c <- status
		}
		s.mu.Unlock()
	}
}

// killSession kills a started program and its session, unless it was reaped: then its PID may
// belong to another process.
func (s *stub) killSession(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ours := s.waiting[pid]; ours {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended; the reaper reports that
	}
}

// killDescendants ends every descendant. As a subreaper the stub is the parent of all orphans
// of its programs, so none can escape by forking away.
func killDescendants() int {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit) //nolint:forbidigo // the end of the process owns its own limit
	defer cancel()
	return endDescendants(ctx, os.Getpid())
}

// killAllDescendants is killDescendants and reports whether no descendant is left.
func killAllDescendants() bool {
	killDescendants()
	left, err := identity.Host().Offspring(os.Getpid())
	return err == nil && !slices.ContainsFunc(left, func(p identity.Stat) bool { return !p.Dead() })
}
