package fake

import (
	"context"
	"iter"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var (
	_ providers.ExitReader     = (*Provider)(nil)
	_ providers.QuotaReader    = (*Provider)(nil)
	_ providers.Recorder       = (*Provider)(nil)
	_ providers.ActivityReader = (*Provider)(nil)
	_ providers.Verifier       = (*Provider)(nil)
	_ providers.Clock          = (*Provider)(nil)

	_ providers.ProviderCleaner = (*Provider)(nil)
)

// Skew gives Options.Skew.
func (p *Provider) Skew() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.o.Skew, p.o.Skew != 0
}

// SetSkew moves its clock.
func (p *Provider) SetSkew(ahead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Skew = ahead
}

// Exit is that of the program, nil while it runs.
func (p *Provider) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	if _, err := p.request(ctx, OpExit, id, 0); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpExit, id)
	if err != nil {
		return nil, err
	}
	now := p.o.Now()
	p.read(b, now)
	at, exit := b.ended(now)
	if over, own := b.finished(now); at.IsZero() && !over.IsZero() {
		return own, nil
	}
	if !at.IsZero() && b.stopped(at) && p.lied(LieForgetsExit) {
		exit = exitOf(143, sandbox.ClassKilledByUs, sandbox.CauseStopped)
	}
	return exit, nil
}

// Quota gives Options.Quotas, or how many sandboxes there are.
func (p *Provider) Quota(ctx context.Context) ([]providers.Quota, error) {
	if _, err := p.request(ctx, OpQuota, "", 0); err != nil {
		return nil, err
	}
	if p.o.Quotas != nil {
		return p.o.Quotas, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return []providers.Quota{{Name: "concurrent sandboxes", Unit: "sandboxes", Used: new(float64(len(p.boxes)))}}, nil
}

// Records gives one row for each sandbox that the fake knows.
func (p *Provider) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		if _, err := p.request(ctx, OpRecords, "", 0); err != nil {
			yield(providers.Record{}, err)
			return
		}
		for _, r := range p.records() {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (p *Provider) records() []providers.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []providers.Record
	for _, id := range p.order {
		b, ok := p.boxes[id]
		if !ok {
			continue
		}
		s := b.view(p.o.Now())
		all = append(all, providers.Record{
			SandboxID: id, TaskID: s.TaskID, AgentType: s.AgentType, RawState: s.RawState,
			Live: sandbox.VerdictOf(!s.State.Ended()), CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
		})
	}
	return all
}

// Activity is what the sandbox's own record says of it.
func (p *Provider) Activity(ctx context.Context, id string) (providers.Activity, error) {
	if _, err := p.request(ctx, OpActivity, id, 0); err != nil {
		return providers.Activity{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpActivity, id)
	if err != nil {
		return providers.Activity{}, err
	}
	p.read(b, p.o.Now())
	return providers.Activity{LastWorkAt: b.s.LastActivityAt}, nil
}

// VerifyEnd asks Options.Proof; without one, what has ended or is not there has
// ended. It takes no time and is not counted as a call.
func (p *Provider) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if err := ctx.Err(); err != nil && !p.lied(LieDeaf) {
		return providers.Proof{}, p.wrap(err, "verify", id)
	}
	if p.o.Proof != nil {
		return p.o.Proof(id, q)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	now, s := p.o.Now(), sandbox.StateTerminated
	if ok {
		s = b.view(now).State
	}
	if s.Ended() || (s == sandbox.StateStopped && !q.Delete) {
		return providers.Proof{Ended: sandbox.True, Independent: p.lied(LieIndependent), Evidence: []sandbox.Evidence{{What: "memory", Value: string(s), Source: p.o.Name, At: now}}}, nil
	}
	return providers.Proof{Ended: sandbox.False, Reason: "it is " + string(s)}, nil
}

// CleanupAge is what Cleanup ends: all that is older; an emergency has no age.
const CleanupAge = 10 * time.Minute

// Cleanup ends everything, or what is older than CleanupAge.
func (p *Provider) Cleanup(ctx context.Context, emergency bool) (providers.Cleaned, error) {
	f, err := p.request(ctx, OpCleanup, "", 0)
	if err != nil || f.Skip {
		return providers.Cleaned{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, n := p.o.Now(), int64(0)
	for _, b := range p.boxes {
		if age, _ := b.s.Age(now); b.asked.IsZero() && (emergency || age > CleanupAge) {
			b.asked, b.by = now, "the provider's own cleanup"
			n++
		}
	}
	p.broadcast()
	return providers.Cleaned{Count: &n}, f.Err
}
