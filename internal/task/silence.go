package task

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// watchSilence ends the attempt when it shows no life for its inactivity limit.
// Silence alone is no stillness: who works without a word, by the processor or by
// its session file, is given up to MaxExtension times the limit (tasks.md E4).
func (r *Runner) watchSilence(ctx context.Context, t Task, p *pulse, cut context.CancelCauseFunc) {
	limit := t.Spec.Limits.Inactivity
	if limit <= 0 || t.Spec.NoInactivity {
		return
	}
	for r.silentFor(ctx, p, limit/2) {
		before := r.sign(ctx, t)
		r.say(fmt.Sprintf("no output for %s; at %s it is ended, unless it is at work", sandbox.FormatElapsed(limit/2), sandbox.FormatElapsed(limit)))
		if !r.silentOrHeard(ctx, p, limit) {
			return
		}
		if !r.extends(ctx, t, p, before) {
			return
		}
		if p.silence() >= limit {
			cut(expiredError{ReasonInactivity})
			return
		}
	}
}

// silentOrHeard waits until the limit of silence is reached, or something was heard;
// false = ctx ended.
func (r *Runner) silentOrHeard(ctx context.Context, p *pulse, limit time.Duration) bool {
	for p.silence() >= limit/2 && p.silence() < limit {
		if !pause(ctx, min(limit-p.silence(), time.Second)) {
			return false
		}
	}
	return ctx.Err() == nil
}

// extends waits on while there is life without a word; false = ctx ended.
func (r *Runner) extends(ctx context.Context, t Task, p *pulse, before sign) bool {
	limit := t.Spec.Limits.Inactivity
	for p.silence() >= limit && p.silence() < MaxExtension*limit {
		now := r.sign(ctx, t)
		if !now.works(before) {
			break
		}
		p.extend()
		before = now
		if !pause(ctx, limit/2) {
			return false
		}
	}
	return true
}

// silentFor returns when nothing was heard for so long; false = ctx ended.
func (r *Runner) silentFor(ctx context.Context, p *pulse, d time.Duration) bool {
	for {
		silent := p.silence()
		if silent >= d {
			return true
		}
		if !pause(ctx, d-silent) {
			return false
		}
	}
}

// sign is a look at what shows life without a word.
type sign struct {
	at      time.Time
	cpu     *float64 // seconds
	session int64    // bytes; -1 = not known
}

func (r *Runner) sign(ctx context.Context, t Task) sign {
	ref := t.Last().Ref()
	u := r.usage(ctx, ref)
	return sign{at: time.Now(), cpu: u.CPUSeconds, session: r.sessionSize(ctx, t, ref)}
}

// works says that there was life between two looks.
func (s sign) works(before sign) bool {
	if s.session >= 0 && before.session >= 0 && s.session > before.session {
		return true
	}
	length := s.at.Sub(before.at).Seconds()
	return s.cpu != nil && before.cpu != nil && length > 0 && (*s.cpu-*before.cpu)/length > BusyShare
}

// sessionLimit bounds what is read of a session file.
const sessionLimit = 4 << 20

// sessionSize is how long the agent's session file is; -1 where there is none.
func (r *Runner) sessionSize(ctx context.Context, t Task, ref sandbox.Ref) int64 {
	if t.Spec.Session == "" {
		return -1
	}
	out := r.inside(ctx, ref, t.Spec.Workdir, "wc -c < \"$1\"", t.Spec.Session)
	n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// session counts the agent's messages in its session file; nil where there is none.
func (r *Runner) session(ctx context.Context, t Task, a Attempt) *int {
	if t.Spec.Session == "" {
		return nil
	}
	out := r.inside(ctx, a.Ref(), t.Spec.Workdir, fmt.Sprintf("tail -c %d \"$1\"", sessionLimit), t.Spec.Session)
	n, spoke := 0, false
	for line := range strings.Lines(out) {
		kind, _ := message(strings.TrimSpace(line))
		spoke = spoke || kind != noEvent
		if kind == aMessage {
			n++
		}
	}
	if !spoke {
		return nil
	}
	return &n
}

// inside runs a short shell text in the sandbox; "" where that fails.
func (r *Runner) inside(ctx context.Context, ref sandbox.Ref, workdir, text string, args ...string) string {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	var out bytes.Buffer
	exit, err := r.o.Sandboxes.Exec(ctx, ref, providers.Command{
		Args: append([]string{"sh", "-c", text, "sbx"}, args...), Workdir: workdir, Stdout: &limited{w: &out, left: sessionLimit},
	})
	if err != nil || exit.Code == nil || *exit.Code != 0 {
		return ""
	}
	return out.String()
}

// limited keeps the first bytes of a stream and swallows the rest.
type limited struct {
	w    *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, _ = l.w.Write(b[:n]) // a buffer takes everything
	return len(b), nil
}
