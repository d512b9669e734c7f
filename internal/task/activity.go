package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// watchInactivity ends the attempt when it shows no activity for its limit. Silence is not
// enough: a program that uses the processor or writes its session file is given up to
// MaxExtension times the limit.
func (r *Runner) watchInactivity(ctx context.Context, t Task, p *outputTracker, cut context.CancelCauseFunc) {
	limit := t.Spec.Limits.Inactivity
	if limit <= 0 || t.Spec.NoInactivity {
		return
	}
	for {
		if silent := p.silentTime(); silent < limit/2 {
			if poll.Sleep(ctx, limit/2-silent) != nil {
				return
			}
			continue
		}
		before := r.readActivity(ctx, t)
		r.sendMessage(fmt.Sprintf("no output for %s; sbx stops it at %s unless it is active", sandbox.FormatElapsed(limit/2), sandbox.FormatElapsed(limit)))
		for p.silentTime() >= limit/2 && p.silentTime() < limit {
			if poll.Sleep(ctx, min(limit-p.silentTime(), time.Second)) != nil {
				return
			}
		}
		if ctx.Err() != nil || !r.extendWhileBusy(ctx, t, p, before) {
			return
		}
		switch {
		case p.silentTime() < limit:
		case p.isAsked() && !r.logShowsSilence(ctx, t, p):
			p.noteOutput()
		default:
			cut(expiredError{ReasonInactivity})
			return
		}
	}
}

// logShowsSilence reports whether the log can be read and has no line that its stream has not shown: a stream that
// is lost, or cannot be opened again, is silent too. A provider that reads no log apart from its stream has none.
func (r *Runner) logShowsSilence(ctx context.Context, t Task, p *outputTracker) bool {
	ctx, stop := context.WithTimeout(ctx, replayTimeout)
	defer stop()
	for line, err := range r.o.Sandboxes.Logs(ctx, t.Last().Ref(), providers.LogQuery{Since: p.lastWritten()}) {
		switch {
		case fault.KindOf(err) == fault.KindUnsupported:
			return true
		case err != nil || line.Gap == nil && line.At.After(p.lastWritten()):
			return false
		}
	}
	return ctx.Err() == nil
}

// extendWhileBusy waits while a silent program shows other activity; false = ctx ended.
func (r *Runner) extendWhileBusy(ctx context.Context, t Task, p *outputTracker, before activitySign) bool {
	limit := t.Spec.Limits.Inactivity
	for p.silentTime() >= limit && p.silentTime() < MaxExtension*limit {
		now := r.readActivity(ctx, t)
		if !now.showsWork(before) {
			break
		}
		p.markExtended()
		before = now
		if poll.Sleep(ctx, min(limit/2, max(time.Second, MaxExtension*limit-p.silentTime()))) != nil {
			return false
		}
	}
	return true
}

// activitySign is a sample of what shows activity without output.
type activitySign struct {
	at      time.Time
	cpu     *float64 // seconds
	session int64    // bytes of the session file; -1 = not known
}

func (r *Runner) readActivity(ctx context.Context, t Task) activitySign {
	ref, size := t.Last().Ref(), int64(-1)
	u := r.lastUsage(ctx, ref)
	at := time.Now()
	if t.Spec.Session != "" {
		out := r.runShell(ctx, ref, t.Spec.Workdir, "wc -c < \"$1\"", t.Spec.Session)
		if n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64); err == nil {
			size = n
		}
	}
	return activitySign{at: at, cpu: u.CPUSeconds, session: size}
}

// showsWork reports activity between two samples.
func (s activitySign) showsWork(before activitySign) bool {
	if s.session >= 0 && before.session >= 0 && s.session > before.session {
		return true
	}
	length := s.at.Sub(before.at).Seconds()
	return s.cpu != nil && before.cpu != nil && length > 0 && (*s.cpu-*before.cpu)/length > BusyShare
}

// sessionLimit bounds how many bytes are read from a session file.
const sessionLimit = 4 << 20

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

// limitedBuffer keeps the first bytes of a stream and discards the rest.
type limitedBuffer struct {
	w    *bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, _ = l.w.Write(b[:n]) // a bytes.Buffer never fails
	return len(b), nil
}

// lineKind classifies a line of an agent's output.
type lineKind int

const (
	plainLine lineKind = iota
	agentEvent
	agentMessage
)

// parseAgentLine reads a line of an agent's stream or session file: a JSON object with a
// type, or the line that names the session (S0-3). Progress counts the assistant's messages
// (S0-24).
func parseAgentLine(line string) (kind lineKind, session string) {
	marker := strings.TrimLeftFunc(line, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsSymbol(r) || unicode.IsMark(r) || r == '\u200d'
	})
	if name, found := strings.CutPrefix(marker, "Session: "); found { // an emoji often precedes it
		return plainLine, sessionName(name)
	}
	if !strings.HasPrefix(line, "{") {
		return plainLine, ""
	}
	var event struct {
		Type    string `json:"type"`
		Event   string `json:"event_type"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(line), &event) != nil {
		return plainLine, ""
	}
	switch word := event.Type + event.Event; {
	case word == "":
		return plainLine, ""
	case word == "assistant", strings.HasSuffix(word, "assistant_message"):
		return agentMessage, sessionName(event.Session)
	}
	return agentEvent, sessionName(event.Session)
}

// sessionName returns the name of a session, or "" where it contains characters that are
// not safe to hand on.
func sessionName(word string) string {
	word = strings.TrimSpace(word)
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	if len(word) > 128 || strings.Trim(word, plain) != "" {
		return ""
	}
	return word
}

// longestLine is the length in bytes at which a line without an end is cut.
const longestLine = 64 << 10

// lineWriter splits a stream of bytes into lines for an outputTracker. One goroutine
// writes.
type lineWriter struct {
	p      *outputTracker
	stream string
	rest   []byte
}

func (l *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			l.rest = append(l.rest, b...)
			l.p.noteGrowth(l.stream, int64(len(l.rest)))
			if len(l.rest) >= longestLine {
				l.flushRest()
			}
			break
		}
		l.rest = append(l.rest, b[:end]...)
		l.emitLine()
		b = b[end+1:]
	}
	return n, nil
}

// flushRest emits the last line where it has no line end.
func (l *lineWriter) flushRest() {
	if len(l.rest) > 0 {
		l.emitLine()
	}
}

func (l *lineWriter) emitLine() {
	l.p.addLine(sandbox.LogLine{At: time.Now(), Stream: l.stream, Text: string(l.rest)})
	l.rest = l.rest[:0]
}
