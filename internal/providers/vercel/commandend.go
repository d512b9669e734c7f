package vercel

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// refused is the error of a command whose stream never began. It may run all the
// same where the request could have arrived.
func (r *command) refused(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		r.kill(ctx)
		return r.c.over(ctx, r.op())
	case httpx.Status(err) == http.StatusPaymentRequired:
		return fault.New(fault.KindRefused, "%w", err).At(r.c.name, r.op()).WithHint("the plan allows no more")
	case moving(err):
		return fault.New(fault.KindUnavailable, "%w", err).At(r.c.name, r.op()).WithHint("it is between two states: look again in a moment")
	case httpx.Status(err) == 0 && !httpx.NotSent(err):
		return fault.New(fault.KindOf(err), "%w; the command may run all the same", err).At(r.c.name, r.op()).
			WithHint("`sbx logs %s/%s` shows what it has written", r.c.name, r.id)
	}
	return r.c.stopped(err, "make a new sandbox; sbx resumes none, since that starts a VM")
}

// stopped adds what to do to the 410 of a session that is over.
func (c *Client) stopped(err error, hint string) error {
	if fault.KindOf(err) != fault.KindGone || fault.HintOf(err) != "" {
		return err
	}
	return &fault.Error{Kind: fault.KindGone, Provider: c.name, Hint: hint, Err: err}
}

// lost is the end of a stream without the command's: the session's status tells
// whether the VM died or the connection.
func (r *command) lost(ctx context.Context, err error) (sandbox.Exit, error) {
	if errors.Is(err, errLong) {
		r.kill(ctx)
		return sandbox.Exit{}, fault.New(fault.KindRefused, "its output cannot be read, and it was ended: %w", err).At(r.c.name, r.op()).
			WithHint("write it to a file inside, and read that in pieces")
	}
	f := triage.ExitFacts{Words: exitWords(), Provider: TypeName, StreamLost: true, At: r.c.now(), Source: "API"}
	if told, ok := errors.AsType[failure](err); ok {
		f.Raw = told.Code
	}
	var one wireOneSession
	looked := r.c.get(ctx, r.op(), session(r.id), &one)
	gone := missing(looked) || f.Raw == "sandbox_stopped"
	if looked == nil && over(one.Session.Status) {
		gone, f.Raw, f.At = true, one.Session.Status, one.Session.ended()
		f.Ran, f.Limit = one.Session.timed()
	}
	exit := triage.ClassifyExit(nil, f)
	exit.Raw = cmp.Or(exit.Raw, "lost stream")
	exit.Evidence = append(exit.Evidence, sandbox.Evidence{What: "stream", Value: err.Error(), Source: "API", At: r.c.now()})
	if gone {
		return exit, fault.New(fault.KindGone, "the session ended while the command ran").At(r.c.name, r.op()).
			WithHint("make a new sandbox; `sbx inspect %s/%s` may say why it ended", r.c.name, r.id)
	}
	return exit, fault.New(fault.KindUnavailable, "the connection was lost; the command may run on, and its end was not seen: %w", err).At(r.c.name, r.op()).
		WithHint("`sbx logs %s/%s` shows what it has written", r.c.name, r.id)
}

// kill ends the command and all that carries its mark, by two ways at once: a
// program inside that finds them, and the service's own signal to the command alone.
// It is done for a caller who is gone, so errors have nobody to go to, and nothing
// that fails here is cleaned up in turn.
func (r *command) kill(ctx context.Context) {
	if !r.users {
		return
	}
	ctx, cancel := guest.CleanupContext(ctx, killTime)
	defer cancel()
	k := &command{c: r.c, id: r.id, mark: mark("kill"), limit: killTime}
	k.cmd.Args = []string{"sh", "-c", guest.KillMarked(markVariable + "=" + r.mark), probeName}
	body, err := k.body(ctx)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		s, err := r.c.stream(ctx, httpx.Request{Op: r.op(), Method: http.MethodPost, Path: session(r.id, "cmd"), JSON: body, OneSandbox: true})
		if err == nil {
			_ = lines(s, func(wireLine) error { return nil })
			_ = s.Close()
		}
	})
	if r.seen.ID != "" {
		both.Go(func() {
			_, _ = r.c.http.Do(ctx, httpx.Request{
				Op: r.op(), Method: http.MethodPost, Path: session(r.id, "cmd", r.seen.ID, "kill"), Query: r.c.scoped(), JSON: wireKill{sigKill},
			})
		})
	}
	both.Wait()
}
