package fake

import (
	"context"
	"iter"
	"maps"
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
	_ providers.LabelEditor    = (*Provider)(nil)
	_ providers.Extender       = (*Provider)(nil)
	_ providers.Clock          = (*Provider)(nil)

	_ providers.ProviderCleaner = (*Provider)(nil)
)

// Skew is Options.Skew.
func (p *Provider) Skew() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.o.Skew, p.o.Skew != 0
}

// SetSkew sets Options.Skew.
func (p *Provider) SetSkew(ahead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Skew = ahead
}

// Exit is the exit of the program, nil while it runs.
func (p *Provider) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	return readBox(ctx, p, OpExit, id, func(b *box, now time.Time) (*sandbox.Exit, error) {
		at, exit := b.endState(now)
		if over, own := b.programEnd(now); at.IsZero() && !over.IsZero() {
			return own, nil
		}
		if !at.IsZero() && b.endedByRequest(at) && p.hasLie(LieForgetsExit) {
			exit = exitOf(143, sandbox.ClassKilledByUs, sandbox.CauseStopped)
		}
		return exit, nil
	})
}

// EditLabels replaces the labels of a sandbox. A Fault with Skip accepts and changes nothing.
func (p *Provider) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	f, err := p.beginRequest(ctx, OpLabels, id, 0)
	if err != nil {
		return nil, err
	}
	labels, err := p.replaceLabels(id, edit, f.Skip)
	if err != nil {
		return nil, err
	}
	return labels, p.finishRequest(ctx, f, OpLabels, id)
}

func (p *Provider) replaceLabels(id string, edit func(labels map[string]string), skip bool) (map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.findBox(OpLabels, id)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	if !p.hasLie(LieDropsLabels) {
		maps.Copy(labels, b.s.Labels)
	}
	edit(labels)
	if !skip {
		b.s.Labels = maps.Clone(labels)
		p.notifyChange()
	}
	return labels, nil
}

// Extend moves the end of a sandbox, to Options.LongestLife from now at most. A Fault with Skip accepts and changes
// nothing.
func (p *Provider) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	before, err := providers.ReadToExtend(ctx, p, id, until)
	if err != nil {
		return before, err
	}
	f, err := p.beginRequest(ctx, OpExtend, id, 0)
	if err != nil {
		return before, err
	}
	now := p.o.Now()
	if longest := now.Add(p.o.LongestLife); p.o.LongestLife > 0 && until.After(longest) {
		until = longest
	}
	if p.hasLie(LieShortens) {
		until = now.Add(time.Second)
	}
	p.editBox(id, func(b *box) {
		if !f.Skip && !p.hasLie(LieKeepsEnd) {
			b.s.ExpiresAt = until
		}
	})
	return before, p.finishRequest(ctx, f, OpExtend, id)
}

// Quota is Options.Quotas, or the number of sandboxes.
func (p *Provider) Quota(ctx context.Context) ([]providers.Quota, error) {
	if _, err := p.beginRequest(ctx, OpQuota, "", 0); err != nil {
		return nil, err
	}
	if p.o.Quotas != nil {
		return p.o.Quotas, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return []providers.Quota{{Name: "concurrent sandboxes", Unit: "sandboxes", Used: new(float64(len(p.boxes)))}}, nil
}

// Records has one row for each sandbox.
func (p *Provider) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		if _, err := p.beginRequest(ctx, OpRecords, "", 0); err != nil {
			yield(providers.Record{}, err)
			return
		}
		for _, r := range p.allRecords() {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (p *Provider) allRecords() []providers.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []providers.Record
	for _, id := range p.order {
		b, ok := p.boxes[id]
		if !ok {
			continue
		}
		s := b.toSandbox(p.o.Now())
		all = append(all, providers.Record{
			SandboxID: id, TaskID: s.TaskID, AgentType: s.AgentType, RawState: s.RawState,
			Live: sandbox.VerdictOf(!s.State.Ended()), CreatedAt: s.CreatedAt, EndedAt: s.EndedAt,
		})
	}
	return all
}

// Activity is the last activity of the sandbox's record; its agent reports until now.
func (p *Provider) Activity(ctx context.Context, id string) (providers.Activity, error) {
	return readBox(ctx, p, OpActivity, id, func(b *box, now time.Time) (providers.Activity, error) {
		a := providers.Activity{LastWorkAt: b.s.LastActivityAt}
		if !a.LastWorkAt.IsZero() {
			a.Silence = max(0, now.Sub(a.LastWorkAt))
		}
		return a, nil
	})
}

// VerifyEnd is Options.Proof or, without it, a proof for an ended or missing sandbox. It takes no time
// and is not counted as a call.
func (p *Provider) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if err := ctx.Err(); err != nil && !p.hasLie(LieDeaf) {
		return providers.Proof{}, p.placeError(err, "verify", id)
	}
	if p.o.Proof != nil {
		return p.o.Proof(id, q)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[id]
	now, s := p.o.Now(), sandbox.StateTerminated
	if ok {
		s = b.toSandbox(now).State
	}
	if s.Ended() || (s == sandbox.StateStopped && !q.Delete) {
		return providers.Proof{Ended: sandbox.True, Independent: p.hasLie(LieIndependent), Evidence: []sandbox.Evidence{{What: "memory", Value: string(s), Source: p.o.Name, At: now}}}, nil
	}
	return providers.Proof{Ended: sandbox.False, Reason: "it is " + string(s)}, nil
}

// CleanupAge is the age from which Cleanup ends a sandbox; in an emergency it ends all.
const CleanupAge = 10 * time.Minute

// Cleanup ends all sandboxes, or those older than CleanupAge.
func (p *Provider) Cleanup(ctx context.Context, emergency bool) (providers.Cleaned, error) {
	f, err := p.beginRequest(ctx, OpCleanup, "", 0)
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
	p.notifyChange()
	return providers.Cleaned{Count: &n}, f.Err
}

var _ providers.Admitter = (*Provider)(nil)

// Admit admits every sandbox; a Fault of OpAdmit refuses.
func (p *Provider) Admit(ctx context.Context, _ int64) error {
	f, err := p.beginRequest(ctx, OpAdmit, "", 0)
	if err != nil {
		return err
	}
	return f.Err
}
