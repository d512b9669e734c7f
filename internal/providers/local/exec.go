package local

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// Exec has the sandbox's stub run one more command, inside the same limits and
// namespaces. The command ends with ctx.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	r, err := c.load(ctx, "exec", id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	if alive, err := c.alive(r); err != nil || !alive {
		over := fault.New(fault.KindGone, "it has ended").At(c.name, op).
			WithHint("`sbx logs %s/%s` shows what it wrote; `sbx ls --state running` lists what runs", c.name, id)
		return sandbox.Exit{}, c.trouble(op, errors.Join(err, over))
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
	case !unwritable(err) && !errors.Is(err, errors.ErrUnsupported): // without the mark it runs all the same
		return sandbox.Exit{}, c.trouble(op, err)
	}
	streams, err := openStreams(cmd)
	if err != nil {
		return sandbox.Exit{}, c.trouble(op, err)
	}
	defer streams.close()
	err = wire.SendExec(conn, wire.Exec{Argv: cmd.Args, Env: cmd.Env, Dir: cmd.Workdir, TTY: cmd.TTY != nil}, streams.theirs)
	if err != nil {
		return sandbox.Exit{}, fault.New(fault.KindLauncher, "%w", err).At(c.name, op)
	}
	streams.copy(cmd)
	defer hangUpWith(ctx, conn)()
	return c.follow(ctx, r, conn, streams)
}

// noteExec notes the beginning of a command; the func returned notes its end. Between
// two short commands the sandbox is as much at work as in a long one.
func (c *Client) noteExec(id string) func() {
	note := func() { _ = c.store.NoteExec(id, c.now()) } // on a read-only disk the commands show while they run
	note()
	return note
}

// Processes tells whether a command runs inside for a client of its own: what that
// writes goes to the client alone, and is in no log.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	if _, err := c.load(ctx, "processes", id); err != nil {
		return nil, err
	}
	held, err := c.store.ExecHeld(id)
	if err != nil || !held {
		return nil, c.trouble("processes "+id, err)
	}
	return []providers.Process{{Args: []string{"exec"}}}, nil
}

// hangUpWith ends the connection when ctx ends, which ends the command. The
// returned func is called before conn is closed.
func hangUpWith(ctx context.Context, conn *os.File) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = shutdown(conn) // a connection that is gone already has hung up
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// follow waits for the command's end and for the last of its output.
func (c *Client) follow(ctx context.Context, r record.Record, conn io.Reader, streams *streams) (sandbox.Exit, error) {
	op := "exec " + r.ID
	answers := wire.NewReader(conn)
	for {
		var report wire.StubReport
		if err := answers.Next(&report); err != nil {
			if ctx.Err() != nil {
				return sandbox.Exit{}, c.trouble(op, ctx.Err())
			}
			return c.lost(ctx, r)
		}
		switch {
		case report.Fail != nil:
			return sandbox.Exit{}, c.startTrouble(op, report.Fail)
		case report.Exited != nil:
			streams.wait(ctx)
			e := record.Exit{Signal: report.Exited.Signal}
			if e.Signal == 0 {
				e.Code = &report.Exited.Code
			}
			return classify(nil, record.Record{Exit: &e, EndedAt: c.now()}, nil), nil
		}
	}
}

// lost explains why a command's end was not seen: the sandbox ended under it.
func (c *Client) lost(ctx context.Context, r record.Record) (sandbox.Exit, error) {
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

// streams are a command's three descriptors and the copying between them and
// what the caller gave.
type streams struct {
	theirs [3]*os.File
	opened []*os.File
	in     *os.File // our end of the command's input, when it is a pipe
	outs   []*os.File
	done   sync.WaitGroup
}

// openStreams passes real files on as they are and puts a pipe before anything
// else. A terminal is one descriptor for all three.
func openStreams(cmd providers.Command) (*streams, error) {
	s := &streams{}
	if cmd.TTY != nil {
		return s, s.openTerminal(cmd)
	}
	if err := s.openInput(cmd.Stdin); err != nil {
		s.close()
		return nil, err
	}
	for i, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
		if err := s.openOutput(i+1, w); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *streams) openInput(from io.Reader) error {
	if file, ok := from.(*os.File); ok && file != nil {
		s.theirs[0] = file
		return nil
	}
	if from == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.theirs[0] = s.keep(null)
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs[0], s.in = s.keep(r), s.keep(w)
	return nil
}

func (s *streams) openOutput(i int, to io.Writer) error {
	if file, ok := to.(*os.File); ok && file != nil {
		s.theirs[i] = file
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.theirs[i] = s.keep(w)
	s.outs = append(s.outs, s.keep(r))
	return nil
}

func (s *streams) keep(f *os.File) *os.File {
	s.opened = append(s.opened, f)
	return f
}

// copy moves bytes between the caller's streams and the command's. The
// command's own ends are closed here first, so that its exit ends the copying.
func (s *streams) copy(cmd providers.Command) {
	for _, f := range s.theirs {
		if f != cmd.Stdin && f != cmd.Stdout && f != cmd.Stderr {
			f.Close()
		}
	}
	if s.in != nil && cmd.Stdin != nil {
		go func() { // ends with the caller's input or with the command's end of the pipe
			_, _ = io.Copy(s.in, cmd.Stdin) // a command that stopped reading is not an error
			if cmd.TTY == nil {
				s.in.Close() // a terminal still carries output
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
		from := s.outs[next]
		next++
		s.done.Go(func() { _, _ = io.Copy(w, from) }) // a caller that stopped reading is not an error
	}
}

// wait returns when the last output has been copied or ctx ends: a daemon that
// the command left behind may hold a pipe open for ever.
func (s *streams) wait(ctx context.Context) {
	copied := make(chan struct{})
	go func() {
		s.done.Wait()
		close(copied)
	}()
	select {
	case <-copied:
	case <-ctx.Done():
	}
}

func (s *streams) close() {
	for _, f := range s.opened {
		f.Close()
	}
}
