//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/providers/local/wire"
)

// stubProcess is the stub as its supervisor sees it.
type stubProcess struct {
	process  *os.Process
	handle   *identity.Handle
	isolated bool                 // nobody of its tree can leave it
	life     *os.File             // closing it tells the stub that it is alone
	reports  chan wire.StubReport // closed when the stub is gone
}

// launch starts the stub with the strongest isolation that is permitted here
// and has it start the program.
func (s *supervisor) launch() error {
	s.output = runlog.NewWriter(s.store.Dir(s.rec.ID), s.rec.Limits.OutputBytes)
	socket, err := listen(s.store.Dir(s.rec.ID))
	if err != nil {
		return fmt.Errorf("opening the command socket: %w", err)
	}
	if socket != nil {
		defer socket.Close()
	}
	for _, level := range isolationLevels() {
		err = s.tryLaunch(level, socket)
		if err == nil || !refusedIsolation(err) {
			break
		}
	}
	return err
}

func refusedIsolation(err error) bool {
	var fail *wire.Fail
	return errors.As(err, &fail) && fail.Kind == wire.FailIsolation
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
	s.stub = &stubProcess{process: process, isolated: level.isolated(), life: pipes.life.parent, reports: make(chan wire.StubReport, 1)}
	pipes.closeChildEnds()
	started, err := s.instruct(level, pipes)
	if err != nil {
		pipes.closeParentEnds()
		s.killStub()
		s.stub = nil
		return err
	}
	s.rec.Limits.Isolation = level.String()
	s.identify(started)
	s.copyOutput(pipes.stdout.parent, pipes.stderr.parent)
	return nil
}

// instruct hands the stub its order and waits until the program runs.
func (s *supervisor) instruct(level isolation, pipes *stubPipes) (wire.Started, error) {
	order := wire.StubOrder{
		Argv: s.rec.Command, Wrap: s.order.Wrap, Env: s.order.Env, Dir: s.rec.Workdir,
		Cgroup: s.rec.Cgroup, Isolated: level.isolated(), OOMScoreAdj: 500, Linger: s.rec.Linger,
	}
	if !level.isolated() {
		order.Proof = s.store.Proof(s.rec.ID)
	}
	if s.soft {
		order.DataBytes = backstop(s.rec.Limits.MemoryBytes)
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
	go s.stub.listen(reports, pipes.report.parent)
	return *first.Started, nil
}

// listen passes reports on until the stub is gone.
func (p *stubProcess) listen(reports *wire.Reader, pipe io.Closer) {
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

// identify records who the stub and the program are. A program that has ended
// already stays unknown; the kill does not need it.
func (s *supervisor) identify(started wire.Started) {
	if stub, err := identity.Of(s.stub.process.Pid); err == nil {
		s.rec.Stub = stub
		s.stub.handle, _ = identity.Open(stub) // without a handle the child is killed by its own process value
	}
	if pid := hostPID(s.stub.process.Pid, started.PID); pid > 0 {
		if program, err := identity.Of(pid); err == nil {
			s.rec.Program = program
		}
	}
}

// backstop bounds what a program may allocate between two looks of the
// watchdog: twice its limit and 128 MiB. RLIMIT_DATA counts per process and
// makes allocation fail in ways that look like crashes, so it stands well
// above the limit that the watchdog holds.
func backstop(limit int64) int64 { return 2*limit + 128<<20 }

type pipe struct{ parent, child *os.File }

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

func (p *stubPipes) each(f func(*pipe)) {
	for _, end := range []*pipe{&p.order, &p.report, &p.life, &p.stdout, &p.stderr} {
		f(end)
	}
}

func (p *stubPipes) closeChildEnds()  { p.each(func(e *pipe) { e.child.Close() }) }
func (p *stubPipes) closeParentEnds() { p.each(func(e *pipe) { e.parent.Close() }) }
