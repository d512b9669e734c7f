package fake

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.LogReader = (*Provider)(nil)

// Logs has the lines that were added, then the flood, then the output of the program.
func (p *Provider) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		if _, err := p.beginRequest(ctx, OpLogs, id, 0); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if p.hasLie(LieLogsLooks) && !yield(sandbox.LogLine{At: p.o.Now(), Text: "read"}, nil) {
			return
		}
		if p.hasLie(LieStaleLog) {
			honest := yield
			yield = func(l sandbox.LogLine, err error) bool {
				l.At = l.At.Add(-time.Hour)
				return honest(l, err)
			}
		}
		if p.o.Undated {
			dated := yield
			yield = func(l sandbox.LogLine, err error) bool {
				l.At, l.NotAfter = time.Time{}, l.At
				return dated(l, err)
			}
		}
		p.yieldLog(ctx, id, q, yield)
	}
}

func (p *Provider) yieldLog(ctx context.Context, id string, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	r, err := p.readLog(id, q.Follow)
	if err != nil {
		yield(sandbox.LogLine{}, err)
		return
	}
	reported := map[string]int64{} // of unfinished lines, by stream
	for next := p.firstLine(r, q.Tail); ; {
		if !r.yieldFrom(next, q.Since, yield) {
			return
		}
		for ; next < r.lines; next++ {
			delete(reported, r.lineAt(next).Stream) // the line that follows is another one
		}
		if q.Open && !r.yieldOpen(reported, yield) {
			return
		}
		if !q.Follow || r.ended {
			return
		}
		if err := p.waitChange(ctx, r.changed, r.next); err != nil {
			yield(sandbox.LogLine{}, p.placeError(err, OpLogs, id))
			return
		}
		if r, err = p.readLog(id, q.Follow); err != nil {
			return // a sandbox that disappears has ended
		}
	}
}

func (p *Provider) firstLine(r logReading, tail int) int {
	if tail <= 0 || p.hasLie(LieTailAll) {
		return 0
	}
	return max(0, r.lines-tail)
}

// logReading is a log at one moment. Existing lines do not change, so it is read without the lock.
type logReading struct {
	said    []sandbox.LogLine
	flood   int
	written []sandbox.LogLine
	open    []sandbox.LogLine // that have not ended, each whole
	lines   int
	ended   bool // the program or the box has ended
	gone    bool // the box has ended
	changed <-chan struct{}
	next    time.Duration // until it may change by itself; 0 = not known
	base    time.Time
}

// readLog reads a log. While following, an unfinished line is none of its lines before the end.
func (p *Provider) readLog(id string, follow bool) (logReading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.findBox(OpLogs, id)
	if err != nil {
		return logReading{}, err
	}
	now := p.o.Now()
	at, _ := b.endState(now)
	over, _ := b.programEnd(now)
	r := logReading{said: b.logs, flood: b.flood, gone: !at.IsZero(), changed: p.changed, base: b.s.CreatedAt}
	r.ended = r.gone || (!over.IsZero() && !p.hasLie(LieFollowsOn))
	if !r.gone {
		at = now
		if next := b.nextChange(now); !next.IsZero() {
			r.next = next.Sub(now)
		}
	}
	if !over.IsZero() && over.Before(at) {
		at = over
	}
	if !b.ready.IsZero() {
		r.written, r.open = b.program.writtenBy(b.ready, at)
	}
	if !follow || r.ended {
		for _, l := range r.open {
			l.OpenBytes = 0
			r.written = append(r.written, l)
		}
		r.open = nil
	}
	r.lines = len(r.said) + r.flood + len(r.written)
	return r, nil
}

// yieldFrom yields the lines from a number on that are not older than since; false when the consumer
// has stopped.
func (r logReading) yieldFrom(next int, since time.Time, yield func(sandbox.LogLine, error) bool) bool {
	for ; next < r.lines; next++ {
		line := r.lineAt(next)
		if !line.At.Before(since) && !yield(line, nil) {
			return false
		}
	}
	return true
}

func (r logReading) lineAt(i int) sandbox.LogLine {
	if i < len(r.said) {
		return r.said[i]
	}
	if i -= len(r.said); i < r.flood {
		return sandbox.LogLine{At: r.base.Add(time.Duration(i) * time.Millisecond), Stream: "stdout", Text: "line " + strconv.Itoa(i)}
	}
	return r.written[i-r.flood]
}

// yieldOpen yields what the unfinished lines have grown by; false when the consumer has stopped.
func (r logReading) yieldOpen(reported map[string]int64, yield func(sandbox.LogLine, error) bool) bool {
	for _, l := range r.open {
		l.Text = l.Text[reported[l.Stream]:]
		reported[l.Stream] = l.OpenBytes
		if l.Text != "" && !yield(l, nil) {
			return false
		}
	}
	return true
}

// writtenBy are the lines of a program until a time, and those that had not ended then.
func (p program) writtenBy(start, by time.Time) (out, open []sandbox.LogLine) {
	for _, s := range p.steps {
		start = start.Add(s.wait)
		if start.After(by) {
			break
		}
		if s.stream == "" {
			continue
		}
		l := sandbox.LogLine{At: start, Stream: s.stream, Text: s.text}
		if i := slices.IndexFunc(open, func(o sandbox.LogLine) bool { return o.Stream == s.stream }); i >= 0 {
			l.Text = open[i].Text + l.Text
			open = slices.Delete(open, i, i+1)
		}
		if l.OpenBytes = int64(len(l.Text)); s.open {
			open = append(open, l)
			continue
		}
		l.OpenBytes = 0
		out = append(out, l)
	}
	return out, open
}

// waitChange waits for a change, for a duration (0 = none) or for ctx.
func (p *Provider) waitChange(ctx context.Context, changed <-chan struct{}, moment time.Duration) error {
	if p.hasLie(LieDeaf) {
		<-p.released
		return nil
	}
	var due <-chan time.Time
	if moment > 0 {
		t := time.NewTimer(moment)
		defer t.Stop()
		due = t.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-due:
	}
	return nil
}
