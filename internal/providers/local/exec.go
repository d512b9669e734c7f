package local

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// Exec makes the sandbox's stub run one more command, inside the same limits and namespaces.
// The command ends with ctx.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if err := providers.CheckText(cmd.Args, cmd.Env); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.name, op)
	}
	r, err := c.loadRecord(ctx, "exec", id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	if alive, err := c.supervisorAlive(r); err != nil || !alive {
		over := fault.New(fault.KindGone, "it has ended").At(c.name, op).
			WithHint("`sbx logs %s/%s` shows what it wrote; `sbx ls --state running` lists what runs", c.name, id)
		return sandbox.Exit{}, c.classifyError(op, errors.Join(err, over))
	}
	conn, err := wire.Connect(c.store.Dir(id))
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "its command socket does not answer: %w", err).At(c.name, op).
			WithHint("`sbx inspect %s/%s` shows whether it still runs", c.name, id)
	}
	defer conn.Close()
	held, err := c.store.HoldExec(id)
	switch {
	case err == nil:
		defer c.noteExec(id)()
		defer held.Close()
	case !cannotWrite(err) && !errors.Is(err, errors.ErrUnsupported): // the command can run without the mark
		return sandbox.Exit{}, c.classifyError(op, err)
	}
	streams, err := openStreams(cmd)
	if err != nil {
		return sandbox.Exit{}, c.classifyError(op, err)
	}
	defer streams.closeOpened()
	err = wire.SendExec(conn, wire.Exec{Argv: cmd.Args, Env: execEnv(cmd), Dir: cmd.Workdir, TTY: cmd.TTY != nil}, streams.commandFiles)
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "%w", err).At(c.name, op)
	}
	streams.startCopying(cmd)
	defer closeOnCancel(ctx, conn)()
	return c.followCommand(ctx, r, conn, streams)
}

// execEnv are the variables of a command. On a terminal, programs draw for the one at the other end; what was
// asked for comes last, and wins.
func execEnv(cmd providers.Command) []string {
	if cmd.TTY == nil || cmd.TTY.Term == "" {
		return cmd.Env
	}
	return append([]string{"TERM=" + cmd.TTY.Term}, cmd.Env...)
}

// noteExec records the start of a command; the returned func records its end. A sandbox
// with many short commands is as active as one with a long command.
func (c *Client) noteExec(id string) func() {
	note := func() { _ = c.store.NoteExec(id, c.now()) } // on a read-only disk only running commands are visible
	note()
	return note
}

// Processes reports whether a command of a client runs inside: its output goes to the client
// alone and is in no log. It also lists the processes of the program that write elsewhere than into its log.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	r, err := c.loadRecord(ctx, "processes", id)
	if err != nil {
		return nil, err
	}
	held, err := c.store.ExecHeld(id)
	if err != nil {
		return nil, c.classifyError("processes "+id, err)
	}
	if held {
		return []providers.Process{{Args: []string{"exec"}}}, nil
	}
	if r.State != sandbox.StateRunning {
		return nil, nil
	}
	return c.elsewhere(r)
}

// elsewhere lists the living processes of a sandbox of which stdout or stderr is not one of the two pipes of its stub, or
// cannot be read.
func (c *Client) elsewhere(r record.Record) ([]providers.Process, error) {
	tree, err := c.listTree(r)
	if err != nil {
		return nil, c.classifyError("processes "+r.ID, err)
	}
	pipes := openedAs(r.Stub.PID)
	var found []providers.Process
	for _, p := range tree {
		mine := openedAs(p.PID)
		seen := func(fd int) bool {
			return slices.ContainsFunc(pipes[:], func(pipe os.FileInfo) bool { return mine[fd] != nil && os.SameFile(mine[fd], pipe) })
		}
		if seen(0) && seen(1) {
			continue
		}
		if _, err := identity.Of(p.PID); err == nil { // else it has ended since
			found = append(found, providers.Process{PID: int64(p.PID), Args: []string{"writes elsewhere"}})
		}
	}
	return found, nil
}

// openedAs are stdout and stderr of a process; nil = it cannot be read.
func openedAs(pid int) (streams [2]os.FileInfo) {
	for i := range streams {
		if at, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(i+1)); err == nil {
			streams[i] = at
		}
	}
	return streams
}

// closeOnCancel shuts the connection down when ctx ends, which ends the command. The
// returned func must be called before conn is closed.
func closeOnCancel(ctx context.Context, conn *os.File) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = shutdownConn(conn) // the connection may be closed already
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// followCommand waits for the command's end and for the last of its output.
func (c *Client) followCommand(ctx context.Context, r record.Record, conn io.Reader, streams *execStreams) (sandbox.Exit, error) {
	op := "exec " + r.ID
	answers := wire.NewReader(conn)
	for {
		var report wire.StubReport
		if err := answers.Next(&report); err != nil {
			if ctx.Err() != nil {
				return sandbox.Exit{}, c.classifyError(op, ctx.Err())
			}
			return c.lostCommandExit(ctx, r)
		}
		switch {
		case report.Fail != nil:
			return sandbox.Exit{}, c.startError(op, report.Fail)
		case report.Exited != nil:
			streams.waitForOutput(ctx)
			e := record.Exit{Signal: report.Exited.Signal}
			if e.Signal == 0 {
				e.Code = &report.Exited.Code
			}
			return classifyExit(nil, record.Record{Exit: &e, EndedAt: c.now()}, nil), nil
		}
	}
}

// lostCommandExit explains why a command's end was not observed: the sandbox ended.
func (c *Client) lostCommandExit(ctx context.Context, r record.Record) (sandbox.Exit, error) {
	code := 137
	exit := sandbox.Exit{
		Code: &code, Signal: "SIGKILL", Raw: "signal: 9",
		Class: sandbox.ClassKilledUnknown, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown,
	}
	last, err := c.Get(ctx, r.ID)
	if err == nil && last.Exit != nil {
		exit.Evidence = append(exit.Evidence, sandbox.Evidence{
			What: "the sandbox ended", Value: string(last.State) + ", class " + string(last.Exit.Class), Source: "record", At: last.EndedAt,
		})
		if last.Exit.Class == sandbox.ClassKilledByUs || last.Exit.Class == sandbox.ClassStopped {
			exit.Class, exit.Cause, exit.Confidence = last.Exit.Class, last.Exit.Cause, last.Exit.Confidence
		}
	}
	return exit, nil
}

// execStreams are a command's three descriptors and the copying between them and the
// caller's streams.
type execStreams struct {
	commandFiles [3]*os.File
	opened       []*os.File
	inputPipe    *os.File // our end of the command's input, when it is a pipe
	outputPipes  []*os.File
	copiers      sync.WaitGroup
}

// openStreams passes real files directly and puts a pipe before anything else. A terminal is
// one descriptor for all three.
func openStreams(cmd providers.Command) (*execStreams, error) {
	s := &execStreams{}
	if cmd.TTY != nil {
		return s, s.openTerminal(cmd)
	}
	if err := s.openInput(cmd.Stdin); err != nil {
		s.closeOpened()
		return nil, err
	}
	for i, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if err := s.openOutput(i+1, w); err != nil {
			s.closeOpened()
			return nil, err
		}
	}
	return s, nil
}

func (s *execStreams) openInput(from io.Reader) error {
	if file, ok := from.(*os.File); ok && file != nil {
		s.commandFiles[0] = file
		return nil
	}
	if from == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.commandFiles[0] = s.closeLater(null)
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.commandFiles[0], s.inputPipe = s.closeLater(r), s.closeLater(w)
	return nil
}

func (s *execStreams) openOutput(i int, to io.Writer) error {
	if file, ok := to.(*os.File); ok && file != nil {
		s.commandFiles[i] = file
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.commandFiles[i] = s.closeLater(w)
	s.outputPipes = append(s.outputPipes, s.closeLater(r))
	return nil
}

func (s *execStreams) closeLater(f *os.File) *os.File {
	s.opened = append(s.opened, f)
	return f
}

// startCopying copies between the caller's streams and the command's. The command's own ends
// are closed here first, so that its exit ends the copying.
func (s *execStreams) startCopying(cmd providers.Command) {
	for _, f := range s.commandFiles {
		if f != cmd.Stdin && f != cmd.Stdout && f != cmd.Stderr {
			f.Close()
		}
	}
	if s.inputPipe != nil && cmd.Stdin != nil {
		go func() { // ends with the caller's input or with the command's end of the pipe
			_, _ = io.Copy(s.inputPipe, cmd.Stdin) // a command that stopped reading is not an error
			if cmd.TTY == nil {
				s.inputPipe.Close() // a terminal still carries output
			}
		}()
	}
	writers := []io.Writer{cmd.Stdout, cmd.Stderr}
	if cmd.TTY != nil {
		writers = writers[:1]
	}
	next := 0
	for _, w := range writers {
		if _, direct := w.(*os.File); direct && cmd.TTY == nil {
			continue
		}
		if w == nil {
			w = io.Discard
		}
		from := s.outputPipes[next]
		next++
		s.copiers.Go(func() { _, _ = io.Copy(w, from) }) // a caller that stopped reading is not an error
	}
}

// waitForOutput returns when the last output has been copied or ctx ends: a daemon that the
// command left may hold a pipe open indefinitely.
func (s *execStreams) waitForOutput(ctx context.Context) {
	copied := make(chan struct{})
	go func() {
		s.copiers.Wait()
		close(copied)
	}()
	select {
	case <-copied:
	case <-ctx.Done():
	}
}

func (s *execStreams) closeOpened() {
	for _, f := range s.opened {
		f.Close()
	}
}
