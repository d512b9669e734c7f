package vercel

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Exec runs a command in a running session and streams its output. All of stdin is sent as a
// file before the command starts. When ctx ends the command is killed with its child
// processes. A session that does not run is refused: the API's own clients would resume it,
// which starts a VM.
func (c *Client) Exec(ctx context.Context, id string, cmd providers.Command) (sandbox.Exit, error) {
	op := "exec " + id
	if cmd.TTY != nil {
		return sandbox.Exit{}, c.Fault(fault.KindUnsupported, op, "the API has no terminal for commands").WithHint("leave out -t")
	}
	if err := wirekit.CheckCommand(cmd); err != nil {
		return sandbox.Exit{}, fault.Placed(err, c.Profile, op)
	}
	v, err := c.findSession(ctx, "exec", id)
	if err == nil {
		err = c.checkRunning(v, op)
	}
	if err != nil {
		return sandbox.Exit{}, err
	}
	r := &execution{c: c, id: v.session.ID, cwd: v.session.Cwd, cmd: cmd, mark: newMark("exec"), users: true}
	return r.execute(ctx)
}

// checkRunning is nil for a session that runs, which is the only one to take commands.
func (c *Client) checkRunning(v view, op string) error {
	status := v.session.Status
	switch {
	case status == "running":
		return nil
	case sessionEnded(status):
		return c.Fault(fault.KindGone, op, "its session is %s", status).Inside().
			WithHint("create a new sandbox; sbx does not resume one, since that starts a VM")
	}
	return c.Fault(fault.KindUnavailable, op, "its session is %s", status).WithHint("try again soon")
}

// scriptTimeout is the limit of a script that sbx runs for itself where its caller sets none.
const scriptTimeout = 60 * time.Second

// shellOf is a guest.Shell for one session.
func (c *Client) shellOf(id string, env []string) guest.Shell {
	return c.turns.Script(id, c.untimedShell(id, env))
}

// untimedShell is shellOf that waits for no turn.
func (c *Client) untimedShell(id string, env []string) guest.Shell {
	scripts := func(ctx context.Context, cmd providers.Command) (sandbox.Exit, error) {
		r := &execution{c: c, id: id, mark: newMark("probe"), cmd: cmd}
		return r.execute(ctx)
	}
	return guest.Command(scripts).Shell(env, scriptTimeout)
}

// newMark is a value for the environment of one command and its child processes.
func newMark(kind string) string { return kind + "-" + strings.ToLower(rand.Text()[:12]) }

const (
	// maxStdin is the longest stdin of a command, in bytes: it is held in memory and sent in
	// one request.
	maxStdin = 64 << 20
	// defaultWorkdir is the workdir of sessions whose record has none (Vercel Sandbox
	// documentation).
	defaultWorkdir = "/vercel/sandbox"
	// withStdin runs a program with stdin from a file that it removes at once.
	withStdin = `f=$1; shift; exec < "$f" || exit 125; rm -f "$f"; exec "$@"`
)

// uploadStdin sends stdin as a file into the session's folder and returns its path.
func (r *execution) uploadStdin(ctx context.Context) (string, error) {
	text, err := r.readStdin(ctx)
	if err != nil {
		return "", err
	}
	name, folder := ".sbx-stdin-"+r.mark, cmp.Or(r.cwd, defaultWorkdir)
	packed, err := packFile(name, text)
	if err != nil {
		return "", r.c.Fault(fault.KindUnknown, r.op(), "stdin: %w", err)
	}
	_, err = r.c.API.Do(ctx, httpx.Request{
		Op: r.op(), Method: http.MethodPost, Path: sessionPath(r.id, "fs", "write"), Query: r.c.teamQuery(), Body: packed,
		Header: http.Header{"Content-Type": {"application/gzip"}, "X-Cwd": {folder}}, Timeout: createTimeout,
	})
	return path.Join(folder, name), r.c.withGoneHint(err, "create a new sandbox")
}

// readStdin reads stdin to its end, or returns when ctx ends; the read of a stream without
// an end then stays behind.
func (r *execution) readStdin(ctx context.Context) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(r.cmd.Stdin, maxStdin+1))
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, r.c.contextFault(ctx, r.op())
	case got := <-done:
		switch {
		case got.err != nil:
			return nil, r.c.Fault(fault.KindUnknown, r.op(), "stdin: %w", got.err)
		case len(got.text) > maxStdin:
			return nil, fault.Usage("stdin is larger than %d MiB, the limit of one request", maxStdin>>20).At(r.c.Profile, r.op()).
				WithHint("make the command fetch it")
		}
		return got.text, nil
	}
}

func packFile(name string, text []byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
	if err == nil {
		_, err = archive.Write(text)
	}
	err = errors.Join(err, archive.Close(), zipped.Close())
	return packed.Bytes(), err
}
