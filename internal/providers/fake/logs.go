package fake

import (
	"context"
	"iter"
	"strconv"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.LogReader = (*Provider)(nil)

// Logs gives the lines that were added, then the flood, then what the program
// has written so far.
func (p *Provider) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		if _, err := p.request(ctx, OpLogs, id, 0); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if p.lied(LieStaleLog) {
			honest := yield
			yield = func(l sandbox.LogLine, err error) bool {
				l.At = l.At.Add(-time.Hour)
				return honest(l, err)
			}
		}
		p.tell(ctx, id, q, yield)
	}
}

// tell yields what there is, and when following what comes until the end.
func (p *Provider) tell(ctx context.Context, id string, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) {
	r, err := p.readLog(id)
	if err != nil {
		yield(sandbox.LogLine{}, err)
		return
	}
	for next := p.firstLine(r, q.Tail); ; {
		if !r.from(next, q.Since, yield) {
			return
		}
		next = r.lines
		if !q.Follow || r.ended {
			return
		}
		if err := p.await(ctx, r.changed, r.next); err != nil {
			yield(sandbox.LogLine{}, p.wrap(err, OpLogs, id))
			return
		}
		if r, err = p.readLog(id); err != nil {
			return // what vanishes while it is followed has ended
		}
	}
}

func (p *Provider) firstLine(r logReading, tail int) int {
	if tail <= 0 || p.lied(LieTailAll) {
		return 0
	}
	return max(0, r.lines-tail)
}

// logReading is a log at one moment. Lines that were there stay as they are,
// so it is read without the lock.
type logReading struct {
	said    []sandbox.LogLine
	flood   int
	written []sandbox.LogLine
	lines   int
	ended   bool // the program has, or its box
	gone    bool // the box has ended
	changed <-chan struct{}
	next    time.Duration // until it may change by itself; 0 = not known to
	base    time.Time
}

func (p *Provider) readLog(id string) (logReading, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpLogs, id)
	if err != nil {
		return logReading{}, err
	}
	now := p.o.Now()
	at, _ := b.ended(now)
	over, _ := b.finished(now)
	r := logReading{said: b.logs, flood: b.flood, gone: !at.IsZero(), changed: p.changed, base: b.s.CreatedAt}
	r.ended = r.gone || (!over.IsZero() && !p.lied(LieFollowsOn))
	if !r.gone {
		at = now
		if next := b.next(now); !next.IsZero() {
			r.next = next.Sub(now)
		}
	}
	if !over.IsZero() && over.Before(at) {
		at = over
	}
	if !b.ready.IsZero() {
		r.written = b.program.written(b.ready, at)
	}
	r.lines = len(r.said) + r.flood + len(r.written)
	return r, nil
}

// from yields the lines from a number on that are not too old; false when the
// consumer has had enough.
func (r logReading) from(next int, since time.Time, yield func(sandbox.LogLine, error) bool) bool {
	for ; next < r.lines; next++ {
		line := r.line(next)
		if !line.At.Before(since) && !yield(line, nil) {
			return false
		}
	}
	return true
}

func (r logReading) line(i int) sandbox.LogLine {
	if i < len(r.said) {
		return r.said[i]
	}
	if i -= len(r.said); i < r.flood {
		return sandbox.LogLine{At: r.base.Add(time.Duration(i) * time.Millisecond), Stream: "stdout", Text: "line " + strconv.Itoa(i)}
	}
	return r.written[i-r.flood]
}

// written is what a program that began at start has written by a moment.
func (p program) written(start, by time.Time) []sandbox.LogLine {
	var out []sandbox.LogLine
	for _, s := range p.steps {
		start = start.Add(s.wait)
		if start.After(by) {
			break
		}
		if s.stream != "" {
			out = append(out, sandbox.LogLine{At: start, Stream: s.stream, Text: s.text})
		}
	}
	return out
}

// await waits for a change, for a moment to come (0 = none) or for ctx.
func (p *Provider) await(ctx context.Context, changed <-chan struct{}, moment time.Duration) error {
	if p.lied(LieDeaf) {
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
