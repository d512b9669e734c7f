//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/providers/local/wire"
)

// stubProcess is the stub, for its supervisor.
type stubProcess struct {
	process  *os.Process
	handle   *identity.Handle
	isolated bool                 // no process can leave its tree
	life     *os.File             // closing it tells the stub that its supervisor is gone
	reports  chan wire.StubReport // closed when the stub has ended
}

// launchStub starts the stub with the strongest isolation that is permitted here and makes it
// start the program.
func (s *supervisor) launchStub() error {
	s.output = runlog.NewWriter(s.store.Dir(s.rec.ID), s.rec.Limits.OutputBytes)
	socket, err := listenSocket(s.store.Dir(s.rec.ID))
	if err != nil {
		return fmt.Errorf("opening the command socket: %w", err)
	}
	if socket != nil {
		defer socket.Close()
	}
	for _, level := range isolationLevels() {
		err = s.tryLaunch(level, socket)
		if fail, ok := errors.AsType[*wire.Fail](err); !ok || fail.Kind != wire.FailIsolation {
			break
		}
	}
	return err
}

func (s *supervisor) tryLaunch(level isolation, socket *os.File) error {
	pipes, err := openPipes()
	if err != nil {
		return err
	}
	defer pipes.closeChildEnds()
	process, err := startStub(level, pipes, socket)
	if err != nil {
		pipes.closeParentEnds()
		return isolationFail(level, err)
	}
	s.stub = &stubProcess{process: process, isolated: level.usesNamespaces(), life: pipes.life.parent, reports: make(chan wire.StubReport, 1)}
	pipes.closeChildEnds()
	started, err := s.sendStubOrder(level, pipes)
	if err != nil {
		pipes.closeParentEnds()
		s.killStub()
		s.stub = nil
		return err
	}
	s.rec.Limits.Isolation = level.String()
	s.recordIdentities(started)
	s.copyOutput(pipes.stdout.parent, pipes.stderr.parent)
	return nil
}

// sendStubOrder sends the stub its order and waits until the program runs.
func (s *supervisor) sendStubOrder(level isolation, pipes *stubPipes) (wire.Started, error) {
	order := wire.StubOrder{
		Argv: s.rec.Command, Wrap: s.order.Wrap, Env: s.order.Env, Dir: s.rec.Workdir,
		Cgroup: s.rec.Cgroup, Isolated: level.usesNamespaces(), OOMScoreAdj: 500, KeepAfterExit: s.rec.KeepAfterExit,
	}
	if !level.usesNamespaces() {
		order.Proof = s.store.Proof(s.rec.ID)
	}
	if s.softLimit {
		order.DataBytes = dataLimit(s.rec.Limits.MemoryBytes)
	}
	if err := wire.Write(pipes.order.parent, order); err != nil {
		return wire.Started{}, isolationFail(level, err)
	}
	pipes.order.parent.Close()
	reports := wire.NewReader(pipes.report.parent)
	var first wire.StubReport
	switch err := reports.Next(&first); {
	case err != nil:
		return wire.Started{}, isolationFail(level, fmt.Errorf("the stub died before it started the program: %w", err))
	case first.Fail != nil:
		return wire.Started{}, first.Fail
	case first.Started == nil:
		return wire.Started{}, errors.New("the stub answered with neither a start nor a failure")
	}
	go s.stub.forwardReports(reports, pipes.report.parent)
	return *first.Started, nil
}

func (p *stubProcess) forwardReports(reports *wire.Reader, pipe io.Closer) {
	defer close(p.reports)
	defer pipe.Close()
	for {
		var r wire.StubReport
		if reports.Next(&r) != nil {
			return
		}
		p.reports <- r
	}
}

// recordIdentities records the identities of stub and program. A program that has ended
// already stays unknown; killing the tree does not need it.
func (s *supervisor) recordIdentities(started wire.Started) {
	if stub, err := identity.Of(s.stub.process.Pid); err == nil {
		s.rec.Stub = stub
		s.stub.handle, _ = identity.Open(stub) // without a handle the stub is killed by its process value
	}
	if pid := hostPID(s.stub.process.Pid, started.PID); pid > 0 {
		if program, err := identity.Of(pid); err == nil {
			s.rec.Program = program
		}
	}
}

// dataLimit limits what a program may allocate between two samples of the watchdog: twice its
// limit and 128 MiB. RLIMIT_DATA is per process and failed allocations look like crashes, so
// it is well above the limit of the watchdog.
func dataLimit(limit int64) int64 { return 2*limit + 128<<20 }

type pipe struct{ parent, child *os.File }

func stubAttributes(null *os.File, p *stubPipes, socket *os.File) *os.ProcAttr {
	return &os.ProcAttr{
		Dir: "/",
		Env: []string{"GOMAXPROCS=1"},
		Files: []*os.File{
			null, p.stdout.child, p.stderr.child,
			wire.StubOrderFD: p.order.child, wire.StubReportFD: p.report.child,
			wire.StubSocketFD: socket, wire.StubLifeFD: p.life.child,
		},
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
}

// stubPipes are the five pipes between a supervisor and its stub.
type stubPipes struct{ order, report, life, stdout, stderr pipe }

func openPipes() (*stubPipes, error) {
	p := &stubPipes{}
	for _, end := range []struct {
		pipe        *pipe
		parentReads bool
	}{{&p.order, false}, {&p.report, true}, {&p.life, false}, {&p.stdout, true}, {&p.stderr, true}} {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeChildEnds()
			p.closeParentEnds()
			return nil, err
		}
		if end.parentReads {
			*end.pipe = pipe{parent: r, child: w}
		} else {
			*end.pipe = pipe{parent: w, child: r}
		}
	}
	return p, nil
}

func (p *stubPipes) eachPipe(f func(*pipe)) {
	for _, end := range []*pipe{&p.order, &p.report, &p.life, &p.stdout, &p.stderr} {
		f(end)
	}
}

func (p *stubPipes) closeChildEnds()  { p.eachPipe(func(e *pipe) { e.child.Close() }) }
func (p *stubPipes) closeParentEnds() { p.eachPipe(func(e *pipe) { e.parent.Close() }) }
