package fake

import (
	"cmp"
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
	f, err := p.beginRequest(ctx, OpExec, id, 0)
	if err != nil {
		return sandbox.Exit{}, err
	}
	env, err := p.checkEnterable(id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	run := parseCommand(c.Args, append(env, c.Env...))
	if p.o.Command != nil {
		if s, ok := p.o.Command(id, c); ok {
			run = s.toProgram()
		}
	}
	if !run.known {
		return sandbox.Exit{}, p.newRefusal(fault.KindCommandNotFound, OpExec, id, "%q was not found", c.Args)
	}
	nth := p.recordRun(Ran{ID: id, Args: c.Args, At: p.o.Now()})
	defer p.countExec(id)()
	err = p.runUntilCut(ctx, f, func(ctx context.Context) error { return p.runSteps(ctx, id, run, c) })
	switch {
	case errors.Is(err, errCut):
		p.markLost(nth)
		if f.Err == nil {
			f.Err = p.newRefusal(fault.KindUnavailable, OpExec, id, "%w", err)
		}
		return sandbox.Exit{Raw: "lost stream", Class: sandbox.ClassTransport, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown}, f.Err
	case err != nil:
		return sandbox.Exit{}, p.placeError(err, OpExec, id)
	case f.Cut > 0: // it ended before the cut
		return *run.exitOfProgram(), nil
	}
	return *run.exitOfProgram(), p.finishRequest(ctx, f, OpExec, id)
}

var errCut = errors.New("the connection was lost; the command may still run, its end is unknown")

func (p *Provider) runUntilCut(ctx context.Context, f Fault, run func(context.Context) error) error {
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

// countExec counts a running command; the returned function ends that.
func (p *Provider) countExec(id string) func() {
	if !p.editBox(id, func(b *box) { b.execs++ }) {
		return func() {}
	}
	return func() { p.editBox(id, func(b *box) { b.execs-- }) }
}

func (p *Provider) recordRun(r Ran) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran = append(p.ran, r)
	return len(p.ran) - 1
}

func (p *Provider) markLost(nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ran[nth].Lost = true
}

func (p *Provider) runSteps(ctx context.Context, id string, run program, c providers.Command) error {
	for _, s := range run.steps {
		if err := p.waitStep(ctx, id, s.wait); err != nil {
			return err
		}
		if err := p.performStep(s, c); err != nil {
			return err
		}
	}
	if !run.ends {
		return p.waitStep(ctx, id, Forever)
	}
	return nil
}

// checkEnterable checks that a command can run in the sandbox now, and returns the sandbox's
// environment.
func (p *Provider) checkEnterable(id string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.findBox(OpExec, id)
	if err != nil {
		return nil, err
	}
	now := p.o.Now()
	over, _ := b.programEnd(now)
	switch s := b.toSandbox(now); {
	case s.State.Ended(), !over.IsZero() && p.hasLie(LieShutAfter):
		return nil, p.newRefusal(fault.KindGone, OpExec, id, "it has ended")
	case s.State != sandbox.StateRunning:
		return nil, p.newRefusal(fault.KindUnavailable, OpExec, id, "it is %s", s.State)
	}
	return slices.Clip(b.env), nil
}

// waitStep waits for d, or Forever, while the sandbox has not ended.
func (p *Provider) waitStep(ctx context.Context, id string, d time.Duration) error {
	until := time.Now().Add(d)
	for left := d; left != 0; left = max(0, time.Until(until)) {
		r, err := p.readLog(id, false)
		if err != nil || r.gone {
			return fault.New(fault.KindGone, "the sandbox ended while the command ran")
		}
		moment := r.next
		if d != Forever && (moment == 0 || left < moment) {
			moment = left
		}
		if err := p.waitChange(ctx, r.changed, moment); err != nil {
			return err
		}
		if d == Forever {
			until = time.Now().Add(time.Hour) // it ends with the sandbox or ctx
		}
	}
	return nil
}

func (p *Provider) performStep(s step, c providers.Command) error {
	stdout, stderr := cmp.Or(c.Stdout, io.Discard), cmp.Or(c.Stderr, io.Discard)
	if p.hasLie(LieMixedStreams) {
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
