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
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// startFault is the error of a command that envd did not start.
func (r *execution) startFault(err error) error {
	s := httpx.StatusOf(err)
	switch {
	case !r.users && s == nil:
		return err
	case s == nil && !httpx.NotSent(err) && fault.KindOf(err) == fault.KindUnavailable:
		return fault.New(fault.KindUnavailable, "%w; the command may run anyway", err).
			WithHint("`sbx exec %s/%s -- ps` shows whether it runs", r.c.Profile, r.id)
	case s == nil:
		return err
	case s.Status == http.StatusBadGateway && strings.Contains(strings.ToLower(s.Message), "not found"):
		return r.c.Fault(fault.KindGone, r.op(), "its host no longer answers: %w", err).WithHint(
			"it may have reached its time limit: `sbx inspect %s/%s` shows when; create a new one", r.c.Profile, r.id,
		)
	case s.Status == http.StatusBadGateway:
		return r.c.Fault(fault.KindUnavailable, r.op(), "it runs, but its daemon does not answer: %w", err).
			WithHint("`sbx inspect %s/%s` shows more", r.c.Profile, r.id)
	}
	return err
}

const (
	maxReattaches = 3
	reattachPause = 500 * time.Millisecond // before each of them
)

// reattach opens the stream of a command again, by its tag, after it was lost: the command
// still runs in envd, which sends its end to the new client and keeps no output. The gap is
// reported on stderr.
func (r *execution) reattach(ctx context.Context, first error) error {
	lost := first
	for ; r.gaps < maxReattaches && r.end == nil && r.endedBy == "" && r.writeFailed == nil && ctx.Err() == nil; r.gaps++ {
		if err := wirekit.Sleep(ctx, reattachPause); err != nil {
			return err
		}
		body, err := encodeFrame(map[string]any{"process": wireSelect{Tag: r.mark}})
		if err != nil {
			return first
		}
		s, err := r.c.hosts.Stream(ctx, r.newRequest("Connect", "application/connect+json", body))
		if err != nil {
			return first
		}
		_, r.writeFailed = io.WriteString(r.cmd.Stderr, "sbx: the connection was lost and restored; some output is missing\n")
		lost = r.readFrames(ctx, s.Body)
		_ = s.Body.Close()
		switch {
		case lost == nil:
			r.gaps++
			return nil
		case fault.KindOf(lost) == fault.KindNotFound: // it has ended in envd
			r.endedBy = ""
			return first
		}
	}
	return lost
}

// lostExit is the exit of a command whose stream ended before it did: the host shows whether
// the sandbox has ended or the connection was lost.
func (r *execution) lostExit(ctx context.Context, err error) (sandbox.Exit, error) {
	f := triage.ExitFacts{Words: exitWords(), Provider: r.c.TypeName, Raw: r.endedBy, StreamLost: true, Source: "envd", At: r.c.Now()}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.Kind != fault.KindUnavailable {
		if known.Kind == fault.KindTimeout { // its child processes would run on
			err = r.given(ctx, err)
		}
		return triage.ClassifyExit(nil, f), err
	}
	host := r.c.probeHost(ctx, r.id)
	f.Gone = host.isMissing()
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost stream")
	exit.Evidence = append(exit.Evidence, r.c.Evidence("stream", err.Error(), "envd"), r.c.Evidence("host", host.said, "sandbox host"))
	if f.Gone {
		return exit, r.c.Fault(fault.KindGone, r.op(), "the sandbox ended while the command ran").
			WithHint("the timeline of `sbx inspect %s/%s` may show why; create a new one", r.c.Profile, r.id)
	}
	if !r.users {
		return exit, r.c.Fault(fault.KindUnavailable, r.op(), "the connection to the sandbox was lost: %w", err).WithHint("try again")
	}
	return exit, r.c.Fault(fault.KindUnavailable, r.op(), "the connection was lost; the command may still run, its end is unknown: %w", err).
		WithHint("`sbx exec %s/%s -- ps` shows whether it runs", r.c.Profile, r.id)
}

// kill ends the command and all processes with its mark in two ways at once: by a script
// inside that finds them, and by envd's signal to the command alone. Its caller has given up,
// so a failure starts no further cleanup; it is the error.
func (r *execution) kill(ctx context.Context) (err error) {
	if !r.users {
		return nil
	}
	ctx, cancel := wirekit.CleanupContext(ctx)
	defer cancel()
	k := &execution{c: r.c, id: r.id, token: r.token, mark: r.mark + "-kill"}
	k.cmd.Args = guest.Argv(guest.ScriptName, guest.KillMarkedScript(guest.MarkVariable+"="+r.mark))
	var both sync.WaitGroup
	both.Go(func() {
		if _, err = k.runStream(ctx); err == nil && k.end == nil {
			err = errFrame
		}
	})
	both.Go(func() {
		_ = r.callEnvd(ctx, "SendSignal", map[string]any{"process": wireSelect{Tag: r.mark}, "signal": "SIGNAL_SIGKILL"})
	})
	both.Wait()
	return err
}

// given kills a command that was given up with err. The signal alone does not reach its child processes, so only
// the script confirms that nothing of it runs.
func (r *execution) given(ctx context.Context, err error) error {
	return wirekit.Unended(err, r.kill(ctx), r.c.Profile, r.id)
}

func (r *execution) sendStdin(ctx context.Context) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.cmd.Stdin.Read(buffer)
		if n > 0 {
			kind := "stdin"
			if r.cmd.TTY != nil {
				kind = "pty"
			}
			if r.callEnvd(ctx, "SendInput", map[string]any{"process": wireSelect{PID: r.pid}, "input": map[string][]byte{kind: buffer[:n]}}) != nil {
				return // the command has ended, or its stream fails too
			}
		}
		if err != nil {
			_ = r.callEnvd(ctx, "CloseStdin", map[string]any{"process": wireSelect{PID: r.pid}}) // as above
			return
		}
	}
}

func (r *execution) sendSizes(ctx context.Context) {
	wirekit.EachSize(ctx, r.cmd.TTY, func(size providers.Size) {
		_ = r.callEnvd(ctx, "Update", map[string]any{ // see EachSize
			"process": wireSelect{PID: r.pid}, "pty": wirePTY{Size: wireSize{size.Columns, size.Rows}},
		})
	})
}
