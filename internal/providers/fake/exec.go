package fake

import (
	"context"
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
	if _, err := p.request(ctx, OpExec, id, 0); err != nil {
		return sandbox.Exit{}, err
	}
	env, err := p.enterable(id)
	if err != nil {
		return sandbox.Exit{}, err
	}
	run := compile(c.Args, append(env, c.Env...))
	if !run.known {
		return sandbox.Exit{}, p.refuse(fault.KindCommandNotFound, OpExec, id, "%q was not found", c.Args)
	}
	for _, s := range run.steps {
		if err := p.linger(ctx, id, s.wait); err != nil {
			return sandbox.Exit{}, p.wrap(err, OpExec, id)
		}
		if err := p.perform(s, c); err != nil {
			return sandbox.Exit{}, p.wrap(err, OpExec, id)
		}
	}
	if !run.ends {
		return sandbox.Exit{}, p.wrap(p.linger(ctx, id, Forever), OpExec, id)
	}
	return *run.exit(), nil
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
	switch s := b.view(p.o.Now()); {
	case s.State.Ended():
		return nil, p.refuse(fault.KindGone, OpExec, id, "it has ended")
	case s.State != sandbox.StateRunning:
		return nil, p.refuse(fault.KindUnavailable, OpExec, id, "it is %s", s.State)
	}
	return slices.Clip(b.env), nil
}

// linger lets a command take its time, or Forever, while its sandbox lives.
func (p *Provider) linger(ctx context.Context, id string, d time.Duration) error {
	until := time.Now().Add(d)
	for left := d; left != 0; left = max(0, time.Until(until)) {
		r, err := p.readLog(id)
		if err != nil || r.ended {
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
	_, err := io.WriteString(stdout, s.text+"\n")
	return err
}

func orNowhere(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
