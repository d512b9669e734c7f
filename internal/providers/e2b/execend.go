package e2b

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// unreachable is the error of a command that envd never took.
func (r *run) unreachable(err error) error {
	s := httpx.StatusOf(err)
	switch {
	case !r.users && s == nil:
		return err
	case s == nil && !httpx.NotSent(err) && fault.KindOf(err) == fault.KindUnavailable:
		return fault.New(fault.KindUnavailable, "%w; the command may run all the same", err).
			WithHint("`sbx exec %s/%s -- ps` shows whether it does", r.c.name, r.id)
	case s == nil:
		return err
	case s.Status == http.StatusBadGateway && strings.Contains(strings.ToLower(s.Message), "not found"):
		return fault.New(fault.KindGone, "its host is gone: %w", err).At(r.c.name, r.op()).WithHint("its time may be over: `sbx inspect %s/%s` shows when it ends; make a new one", r.c.name, r.id)
	case s.Status == http.StatusBadGateway:
		return fault.New(fault.KindUnavailable, "it runs, but nothing answers inside: %w", err).At(r.c.name, r.op()).
			WithHint("`sbx inspect %s/%s` says more", r.c.name, r.id)
	}
	return err
}

const (
	reattaches  = 3                      // how often a command is looked for again
	betweenThem = 500 * time.Millisecond // and after which pause
)

// reattach finds a command again whose stream was lost, by its tag: envd lets it run
// on and tells its end to whoever comes, but keeps no output for anybody. That
// there is a gap is said on stderr.
func (r *run) reattach(ctx context.Context, first error) error {
	lost := first
	for ; r.gaps < reattaches && r.end == nil && r.refused == "" && r.unfit == nil && ctx.Err() == nil; r.gaps++ {
		if err := guest.Wait(ctx, betweenThem); err != nil {
			return err
		}
		body, err := envelope(map[string]any{"process": wireSelect{Tag: r.mark}})
		if err != nil {
			return first
		}
		s, err := r.c.hosts.Stream(ctx, r.request("Connect", "application/connect+json", body))
		if err != nil {
			return first
		}
		_, r.unfit = io.WriteString(r.cmd.Stderr, "sbx: the connection was lost and made again; output in between is missing\n")
		lost = r.read(ctx, s.Body)
		_ = s.Body.Close()
		switch {
		case lost == nil:
			r.gaps++
			return nil
		case fault.KindOf(lost) == fault.KindNotFound: // envd knows it no more
			r.refused = ""
			return first
		}
	}
	return lost
}

// lost is the end of a stream without the command's end: the host tells whether
// the sandbox died or the connection.
func (r *run) lost(ctx context.Context, err error) (sandbox.Exit, error) {
	f := triage.ExitFacts{Words: exitWords(), Provider: r.c.dialect.name, Raw: r.refused, StreamLost: true, Source: "envd", At: r.c.now()}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind != fault.KindUnavailable {
		if known.Kind == fault.KindTimeout { // what it has started runs on without this
			r.kill(ctx)
		}
		return triage.ClassifyExit(nil, f), err
	}
	look := r.c.look(ctx, r.id)
	f.Gone = look.missing()
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost stream")
	exit.Evidence = append(exit.Evidence, r.c.fact("stream", err.Error(), "envd"), r.c.fact("host", look.said, "sandbox host"))
	if f.Gone {
		return exit, fault.New(fault.KindGone, "the sandbox ended while the command ran").At(r.c.name, r.op()).
			WithHint("the timeline of `sbx inspect %s/%s` may say why; make a new one", r.c.name, r.id)
	}
	if !r.users {
		return exit, fault.New(fault.KindUnavailable, "the look inside was lost: %w", err).At(r.c.name, r.op()).WithHint("try again")
	}
	return exit, fault.New(fault.KindUnavailable, "the connection was lost; the command may run on, and its end was not seen: %w", err).At(r.c.name, r.op()).
		WithHint("`sbx exec %s/%s -- ps` shows whether it does", r.c.name, r.id)
}

// kill ends the command and all that carries its mark, by two ways at once: a
// program inside that finds them, and envd's own signal to the command alone. It is
// done for a caller who is gone, so errors have nobody to go to, and nothing that
// fails here is cleaned up in turn: an envd that answers nothing would be asked
// without end.
func (r *run) kill(ctx context.Context) {
	if !r.users {
		return
	}
	ctx, cancel := guest.CleanupContext(ctx, killTime)
	defer cancel()
	k := &run{c: r.c, id: r.id, token: r.token, mark: r.mark + "-kill"}
	k.cmd.Args = []string{"/bin/sh", "-c", guest.KillMarked(markVariable + "=" + r.mark)}
	var both sync.WaitGroup
	both.Go(func() { _, _ = k.stream(ctx) })
	both.Go(func() {
		_ = r.call(ctx, "SendSignal", map[string]any{"process": wireSelect{Tag: r.mark}, "signal": "SIGNAL_SIGKILL"})
	})
	both.Wait()
}

// feed sends stdin in order, then closes it.
func (r *run) feed(ctx context.Context) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.cmd.Stdin.Read(buffer)
		if n > 0 {
			kind := "stdin"
			if r.cmd.TTY != nil {
				kind = "pty"
			}
			if r.call(ctx, "SendInput", map[string]any{"process": wireSelect{PID: r.pid}, "input": map[string][]byte{kind: buffer[:n]}}) != nil {
				return // the command has ended, or its stream will tell
			}
		}
		if err != nil {
			_ = r.call(ctx, "CloseStdin", map[string]any{"process": wireSelect{PID: r.pid}}) // as above
			return
		}
	}
}

// resize passes on the sizes of the caller's terminal.
func (r *run) resize(ctx context.Context) {
	for {
		select {
		case size, open := <-r.cmd.TTY.Resize:
			if !open {
				return
			}
			_ = r.call(ctx, "Update", map[string]any{ // a size that is lost is no harm
				"process": wireSelect{PID: r.pid}, "pty": wirePTY{Size: wireSize{size.Columns, size.Rows}},
			})
		case <-ctx.Done():
			return
		}
	}
}

// tail keeps the end of a stream.
type tail struct{ text []byte }

const tailBytes = 4 << 10

// Write keeps the newest bytes.
func (t *tail) Write(b []byte) {
	t.text = append(t.text, b...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = t.text[over:]
	}
}

func (t *tail) lines() []string {
	if len(t.text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(t.text), "\n"), "\n")
}
