package fake

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.Commander = (*Provider)(nil)

// Exec runs echo, cat, sleep, true, false, and `sh -c` with those, `exit N`,
// `>&2` and $NAME. Anything else is fault.KindCommandNotFound.
func (p *Provider) Exec(ctx context.Context, id string, c providers.Command) (sandbox.Exit, error) {
	f, err := p.request(ctx, OpExec, id, 0)
	if err != nil {
		return sandbox.Exit{}, err
	}
	env, err := p.enterable(id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	run := compile(c.Args, append(env, c.Env...))
	if p.o.Command != nil {
		if s, ok := p.o.Command(id, c); ok {
			run = s.program()
		}
	}
	if !run.known {
		return sandbox.Exit{}, p.refuse(fault.KindCommandNotFound, OpExec, id, "%q was not found", c.Args)
	}
	nth := p.note(Ran{ID: id, Args: c.Args, At: p.o.Now()})
	defer p.enter(id)()
	err = p.bounded(ctx, f, func(ctx context.Context) error { return p.run(ctx, id, run, c) })
	switch {
	case errors.Is(err, errCut):
		p.lose(nth)
		if f.Err == nil {
			f.Err = p.refuse(fault.KindUnavailable, OpExec, id, "%w", err)
		}
		return sandbox.Exit{Raw: "lost stream", Class: sandbox.ClassTransport, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown}, f.Err
	case err != nil:
		return sandbox.Exit{}, p.wrap(err, OpExec, id)
	case f.Cut > 0: // it ended before that
		return *run.exit(), nil
	}
	return *run.exit(), p.answer(ctx, f, OpExec, id)
}

// errCut is the answer of a stream that a Fault has cut.
var errCut = errors.New("the connection was lost; the command may run on, and its end was not seen")

// bounded runs a command until its stream is cut.
func (p *Provider) bounded(ctx context.Context, f Fault, run func(context.Context) error) error {
	if f.Cut <= 0 {
		return run(ctx)
	}
	bound, cancel := context.WithTimeout(ctx, f.Cut)
	defer cancel()
	err := run(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return errCut
	}
	return err
}

// enter counts a command that runs; the func returned ends it.
func (p *Provider) enter(id string) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	if !ok {
		return func() {}
	}
	b.execs++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.execs--
	}
}

func (p *Provider) note(r Ran) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = append(p.ran, r)
	return len(p.ran) - 1
}

func (p *Provider) lose(nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran[nth].Lost = true
}

// run is what the command does, step by step.
func (p *Provider) run(ctx context.Context, id string, run program, c providers.Command) error {
	for _, s := range run.steps {
		if err := p.spend(ctx, id, s.wait); err != nil {
			return err
		}
		if err := p.perform(s, c); err != nil {
			return err
		}
	}
	if !run.ends {
		return p.spend(ctx, id, Forever)
	}
	return nil
}

// enterable says that a command can run in the sandbox now, and gives the
// sandbox's environment.
func (p *Provider) enterable(id string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpExec, id)
	if err != nil {
		return nil, err
	}
	now := p.o.Now()
	over, _ := b.finished(now)
	switch s := b.view(now); {
	case s.State.Ended(), !over.IsZero() && p.lied(LieShutAfter):
		return nil, p.refuse(fault.KindGone, OpExec, id, "it has ended")
	case s.State != sandbox.StateRunning:
		return nil, p.refuse(fault.KindUnavailable, OpExec, id, "it is %s", s.State)
	}
	return slices.Clip(b.env), nil
}

// spend lets a command take its time, or Forever, while its sandbox lives.
func (p *Provider) spend(ctx context.Context, id string, d time.Duration) error {
	until := time.Now().Add(d)
	for left := d; left != 0; left = max(0, time.Until(until)) {
		r, err := p.readLog(id)
		if err != nil || r.gone {
			return fault.New(fault.KindGone, "the sandbox ended while the command ran")
		}
		moment := r.next
		if d != Forever && (moment == 0 || left < moment) {
			moment = left
		}
		if err := p.await(ctx, r.changed, moment); err != nil {
			return err
		}
		if d == Forever {
			until = time.Now().Add(time.Hour) // only the end of the sandbox or of ctx ends it
		}
	}
	return nil
}

func (p *Provider) perform(s step, c providers.Command) error {
	stdout, stderr := orNowhere(c.Stdout), orNowhere(c.Stderr)
	if p.lied(LieMixedStreams) {
		stderr = stdout
	}
	switch {
	case s.copies && c.Stdin != nil:
		_, err := io.Copy(stdout, c.Stdin)
		return err
	case s.stream == "stderr":
		stdout = stderr
	case s.stream == "":
		return nil
	}
	text := s.text
	if !s.open {
		text += "\n"
	}
	_, err := io.WriteString(stdout, text)
	return err
}

func orNowhere(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
