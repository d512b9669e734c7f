package vercel

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Exec runs a command in a running session and streams it. Stdin is sent whole,
// as a file, before the command starts. When ctx ends the command is killed with
// all it has started. In a session that does not run nothing is done: the API's
// own clients would resume it, which starts a VM.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if cmd.TTY != nil {
		return sandbox.Exit{}, fault.New(fault.KindUnsupported, "the API gives a command no terminal").At(c.name, op).WithHint("leave out -t")
	}
	if len(cmd.Args) == 0 {
		return sandbox.Exit{}, fault.Usage("there is no command").At(c.name, op)
	}
	v, err := c.judged(ctx, "exec", id)
	if err == nil {
		err = c.idle(v, op)
	}
	if err != nil {
		return sandbox.Exit{}, err
	}
	r := &command{c: c, id: v.session.ID, cwd: v.session.Cwd, cmd: cmd, mark: mark("exec"), users: true}
	return r.do(ctx)
}

// idle is why a session that does not run takes no command; nil for one that runs.
func (c *Client) idle(v view, op string) error {
	status := v.session.Status
	switch {
	case status == "running":
		return nil
	case over(status):
		return fault.New(fault.KindGone, "its session is %s", status).At(c.name, op).
			WithHint("make a new sandbox; sbx resumes none, since that starts a VM")
	}
	return fault.New(fault.KindUnavailable, "its session is %s", status).At(c.name, op).WithHint("look again in a moment")
}

const (
	// probeName is $0 of the texts that sbx itself runs in a session, so that they
	// are told from its other commands.
	probeName = "sbx-probe"
	// probeTime is how long such a text may take where its caller sets no limit.
	probeTime = 60 * time.Second
)

// shellOf is a guest.Shell for one session.
func (c *Client) shellOf(id string) guest.Shell {
	return func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, id, text, nil) }
}

func (c *Client) shell(ctx context.Context, id, text string, env []string) ([]byte, int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fault.New(fault.KindUnavailable, "nothing inside answers within %s", probeTime))
	defer cancel()
	var out bytes.Buffer
	r := &command{c: c, id: id, mark: mark("probe")}
	r.cmd = providers.Command{Args: []string{"sh", "-c", text, probeName}, Env: env, Stdout: &out, Stderr: io.Discard}
	exit, err := r.do(ctx)
	if exit.Code == nil {
		return out.Bytes(), -1, err
	}
	return out.Bytes(), *exit.Code, err
}

// mark is a word that one command and all it starts carry in their environment.
func mark(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:12]) }
