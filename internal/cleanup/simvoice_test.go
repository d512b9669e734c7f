package cleanup_test

import (
	"context"
	"iter"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// voices are the output and usage of sandboxes.
type voices struct{ p *client }

// Logs returns the last line of output.
func (v voices) Logs(ctx context.Context, id string, _ providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		p := v.p
		ref := sandbox.Ref{Provider: p.c.name, ID: id}
		p.s.mu.Lock()
		p.inc.tried[ref] = true
		p.s.mu.Unlock()
		_, _, err := p.request(ctx, "logs", id, 0)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		p.s.mu.Lock()
		b, now, last := p.c.find(id), time.Now(), time.Time{}
		switch {
		case b != nil && b.partial(p.s.Seed): // the log has its start, not its output
			last = b.created.Add(time.Second)
		case b != nil && b.logs:
			last = b.lastWork(now)
			p.inc.heard[ref] = sight{at: now, worked: last, gen: b.gen}
		}
		p.s.mu.Unlock()
		if err := p.answer("logs", id); err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		if p.s.mut.hearsNothing {
			last = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		if !last.IsZero() {
			yield(sandbox.LogLine{At: shift(last, p.c.skew), Text: "working"}, nil)
		} else {
			yield(sandbox.LogLine{Text: "a line without a time"}, nil)
		}
	}
}

// CapturesOutput is the truth about the log.
func (v voices) CapturesOutput(s sandbox.Sandbox) bool {
	v.p.s.mu.Lock()
	defer v.p.s.mu.Unlock()
	b := v.p.c.find(s.ID)
	return b != nil && !b.partial(v.p.s.Seed) || v.p.s.mut.trustsPartialLogs
}

// Usage shows an idle processor: agents wait for answers, so that proves nothing.
func (v voices) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	if _, _, err := v.p.request(ctx, "usage", id, 0); err != nil {
		return sandbox.Usage{}, err
	}
	if err := v.p.answer("usage", id); err != nil {
		return sandbox.Usage{}, err
	}
	return sandbox.Usage{At: time.Now(), CPUPercent: new(0.2), Source: "simulated"}, nil
}

// clock is the provider's clock.
type clock struct{ p *client }

// Skew is its offset at the last answer.
func (c clock) Skew() (time.Duration, bool) {
	c.p.s.mu.Lock()
	defer c.p.s.mu.Unlock()
	skew, known := c.p.inc.skews[c.p.c.name]
	return skew, known
}

// proofs read the machine itself.
type proofs struct{ p *client }

// VerifyEnd returns the true state.
func (v proofs) VerifyEnd(ctx context.Context, id string, _ providers.EndQuery) (providers.Proof, error) {
	if _, _, err := v.p.request(ctx, "verify", id, 0); err != nil {
		return providers.Proof{}, err
	}
	v.p.s.mu.Lock()
	defer v.p.s.mu.Unlock()
	b := v.p.c.find(id)
	if b == nil || b.over(time.Now()) {
		return providers.Proof{Ended: sandbox.True}, nil
	}
	return providers.Proof{Ended: sandbox.False, Reason: "the host still answers"}, nil
}
