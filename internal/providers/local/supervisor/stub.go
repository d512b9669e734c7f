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

// stub is the sandbox's PID 1: it starts programs inside the limits and reaps
// whatever they leave.
type stub struct {
	order    wire.StubOrder
	launcher *launcher
	report   *os.File

	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus // programs whose end somebody waits for
	begun   chan struct{}                   // told when there is a child to wait for again
}

// RunStub is the stub's life. It ends with the program, unless the sandbox
// lingers: in a PID namespace that takes everything else along; without one, the
// stub kills what is left.
func RunStub() int {
	runtime.LockOSThread() // keeps the first thread free of the launcher's cgroups
	debug.SetGCPercent(20)
	s := &stub{
		report:  wire.File(wire.StubReportFD, "report"),
		waiting: map[int]chan syscall.WaitStatus{},
		begun:   make(chan struct{}, 1),
	}
	order := wire.File(wire.StubOrderFD, "order")
	if err := wire.NewReader(order).Next(&s.order); err != nil {
		return s.fail(err)
	}
	order.Close()
	socket := wire.File(wire.StubSocketFD, "socket")
	go s.dieWithSupervisor(wire.File(wire.StubLifeFD, "life"))

	if err := settle(s.order.Isolated); err != nil {
		return s.fail(&wire.Fail{Kind: wire.FailIsolation, Message: err.Error()})
	}
	launcher, err := newLauncher(s.order)
	if err != nil {
		return s.fail(err)
	}
	s.launcher = launcher
	ended, err := s.startProgram()
	if err != nil {
		return s.fail(err)
	}
	go s.reap()
	go s.serve(socket)
	e := exited(<-ended)
	if !s.order.Isolated && !s.order.Linger {
		e.Killed = killRest()
	}
	if err := wire.Write(s.report, wire.StubReport{Exited: &e}); err != nil {
		s.endAlone() // without a supervisor nobody is left to tell
	}
	if s.order.Linger {
		select {} // its supervisor ends it
	}
	return 0
}

// startProgram starts the sandbox's program and reports it.
func (s *stub) startProgram() (<-chan syscall.WaitStatus, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pid, ended, err := s.start(request{
		argv: s.order.Argv, env: s.order.Env, dir: s.order.Dir,
		files: []*os.File{null, os.NewFile(1, "stdout"), os.NewFile(2, "stderr")},
	})
	if err != nil {
		return nil, err
	}
	return ended, wire.Write(s.report, wire.StubReport{Started: &wire.Started{PID: pid}})
}

// start has the launcher start a program and registers for its end. The lock
// keeps the reaper from handing out an end that nobody has registered for yet.
func (s *stub) start(r request) (int, <-chan syscall.WaitStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := s.launcher.start(r)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.waiting[pid] = ended
	select {
	case s.begun <- struct{}{}:
	default:
	}
	return pid, ended, nil
}

func exited(status syscall.WaitStatus) wire.Exited {
	if status.Signaled() {
		return wire.Exited{Signal: int(status.Signal())}
	}
	return wire.Exited{Code: status.ExitStatus()}
}

// fail reports a start that came to nothing.
func (s *stub) fail(err error) int {
	_ = wire.Write(s.report, wire.StubReport{Fail: wire.AsFail(err)}) // without a supervisor nobody is left to tell
	return 1
}

// dieWithSupervisor covers the moment before the parent-death signal is armed,
// and systems that have none.
func (s *stub) dieWithSupervisor(life *os.File) {
	var b [1]byte
	for {
		if _, err := life.Read(b[:]); err != nil && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	s.endAlone()
	os.Exit(1) //nolint:forbidigo // PID 1 ends here; nothing of it is left to unwind
}

// endAlone ends everything below a stub whose supervisor is dead, and leaves the proof.
// In a namespace its own death does both.
func (s *stub) endAlone() {
	if !s.order.Isolated && killAllRest() {
		_ = os.WriteFile(s.order.Proof, []byte("the stub ended all that its programs had left\n"), 0o600) // without it the sweep calls it unknown
	}
}

// reap collects every child that ends and hands its status to whoever waits.
func (s *stub) reap() {
	for {
		pid, status, left := waitAny(true)
		if !left { // whoever forks away was somebody's child before: only a start brings a new one
			<-s.begun
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

// kill ends a started program and its session, unless its end was collected
// already: from then on the number may be somebody else's.
func (s *stub) kill(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ours := s.waiting[pid]; ours {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended this instant; the reaper tells
	}
}

// killRest ends every descendant. As a subreaper the stub is the parent of all
// that its programs abandoned, so none can hide by forking away.
func killRest() int {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit) //nolint:forbidigo // the end of the process owns its own limit
	defer cancel()
	return endDescendants(ctx, os.Getpid())
}

// killAllRest is killRest, and says whether no descendant is left.
func killAllRest() bool {
	killRest()
	left, err := identity.Host().Offspring(os.Getpid())
	return err == nil && !slices.ContainsFunc(left, func(p identity.Stat) bool { return !p.Dead() })
}
