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
func (r *Runner) watchSilence(ctx context.Context, t Task, p *outputTracker, cut context.CancelCauseFunc) {
	limit := t.Spec.Limits.Inactivity
	if limit <= 0 || t.Spec.NoInactivity {
		return
	}
	for r.awaitSilence(ctx, p, limit/2) {
		before := r.readActivity(ctx, t)
		r.sendMessage(fmt.Sprintf("no output for %s; at %s it is ended, unless it is at work", shortDuration(limit/2), shortDuration(limit)))
		if !r.awaitLimit(ctx, p, limit) {
			return
		}
		if !r.extendWhileBusy(ctx, t, p, before) {
			return
		}
		if p.silentTime() >= limit {
			cut(expiredError{ReasonInactivity})
			return
		}
	}
}

// awaitLimit waits until the limit of silence is reached, or something was heard;
// false = ctx ended.
func (r *Runner) awaitLimit(ctx context.Context, p *outputTracker, limit time.Duration) bool {
	for p.silentTime() >= limit/2 && p.silentTime() < limit {
		if !pause(ctx, min(limit-p.silentTime(), time.Second)) {
			return false
		}
	}
	return ctx.Err() == nil
}

// extendWhileBusy waits on while there is life without a word; false = ctx ended.
func (r *Runner) extendWhileBusy(ctx context.Context, t Task, p *outputTracker, before activitySign) bool {
	limit := t.Spec.Limits.Inactivity
	for p.silentTime() >= limit && p.silentTime() < MaxExtension*limit {
		now := r.readActivity(ctx, t)
		if !now.showsWork(before) {
			break
		}
		p.markExtended()
		before = now
		if !pause(ctx, limit/2) {
			return false
		}
	}
	return true
}

// awaitSilence returns when nothing was heard for so long; false = ctx ended.
func (r *Runner) awaitSilence(ctx context.Context, p *outputTracker, d time.Duration) bool {
	for {
		silent := p.silentTime()
		if silent >= d {
			return true
		}
		if !pause(ctx, d-silent) {
			return false
		}
	}
}

// activitySign is a look at what shows life without a word.
type activitySign struct {
	at      time.Time
	cpu     *float64 // seconds
	session int64    // bytes; -1 = not known
}

func (r *Runner) readActivity(ctx context.Context, t Task) activitySign {
	ref := t.Last().Ref()
	u := r.lastUsage(ctx, ref)
	return activitySign{at: time.Now(), cpu: u.CPUSeconds, session: r.sessionSize(ctx, t, ref)}
}

// showsWork says that there was life between two looks.
func (s activitySign) showsWork(before activitySign) bool {
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
	out := r.runShell(ctx, ref, t.Spec.Workdir, "wc -c < \"$1\"", t.Spec.Session)
	n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// countMessages counts the agent's messages in its session file; nil where there is none.
func (r *Runner) countMessages(ctx context.Context, t Task, a Attempt) *int {
	if t.Spec.Session == "" {
		return nil
	}
	out := r.runShell(ctx, a.Ref(), t.Spec.Workdir, fmt.Sprintf("tail -c %d \"$1\"", sessionLimit), t.Spec.Session)
	n, spoke := 0, false
	for line := range strings.Lines(out) {
		kind, _ := parseAgentLine(strings.TrimSpace(line))
		spoke = spoke || kind != plainLine
		if kind == agentMessage {
			n++
		}
	}
	if !spoke {
		return nil
	}
	return &n
}

// runShell runs a short shell text in the sandbox; "" where that fails.
func (r *Runner) runShell(ctx context.Context, ref sandbox.Ref, workdir, text string, args ...string) string {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	var out bytes.Buffer
	exit, err := r.o.Sandboxes.Exec(ctx, ref, providers.Command{
		Args: append([]string{"sh", "-c", text, "sbx"}, args...), Workdir: workdir, Stdout: &limitedBuffer{w: &out, left: sessionLimit},
	})
	if err != nil || exit.Code == nil || *exit.Code != 0 {
		return ""
	}
	return out.String()
}

// limitedBuffer keeps the first bytes of a stream and swallows the rest.
type limitedBuffer struct {
	w    *bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, _ = l.w.Write(b[:n]) // a buffer takes everything
	return len(b), nil
}

func shortDuration(d time.Duration) string {
	if d < time.Minute {
		return d.String()
	}
	return sandbox.FormatDuration(d)
}
