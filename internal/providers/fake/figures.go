package fake

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var (
	_ providers.UsageReader = (*Provider)(nil)
	_ providers.StatsReader = (*Provider)(nil)
)

// Usage gives the seed's figures, or a quiet program's: 64 MiB and a twentieth
// of a core. Once it has ended, every figure is unknown.
func (p *Provider) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	if _, err := p.request(ctx, OpUsage, id, 0); err != nil {
		return sandbox.Usage{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpUsage, id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	now := p.o.Now()
	p.read(b, now)
	u := sandbox.Usage{}
	switch at, _ := b.ended(now); {
	case b.usage != nil:
		u = b.usage(now)
	case at.IsZero():
		u = quiet(b.view(now), now)
	}
	if p.lied(LieZeroUsage) {
		u.MemoryBytes, u.MemoryLimitBytes = new(int64), new(int64)
	}
	if u.At.IsZero() {
		u.At = now
	}
	if u.Source == "" {
		u.Source = "fake"
	}
	return u, nil
}

func quiet(s sandbox.Sandbox, now time.Time) sandbox.Usage {
	u := sandbox.Usage{MemoryBytes: new(int64(64 * sandbox.MiB)), PIDs: new(int64(1)), MemoryLimitBytes: s.Limits.MemoryBytes}
	if !s.StartedAt.IsZero() {
		u.CPUSeconds = new(now.Sub(s.StartedAt).Seconds() / 20)
	}
	return u
}

// Stats counts every sandbox that the fake ever had.
func (p *Provider) Stats(ctx context.Context) (providers.Stats, error) {
	if _, err := p.request(ctx, OpStats, "", 0); err != nil {
		return providers.Stats{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var active, provisioning, terminating, destroyed, timedOut int64
	now := p.o.Now()
	for _, b := range p.boxes {
		s := b.view(now)
		switch {
		case s.State.Ended():
			destroyed++
			if s.Exit != nil && s.Exit.Class == sandbox.ClassTimeout {
				timedOut++
			}
		case s.State == sandbox.StateRunning:
			active++
		case s.State == sandbox.StateProvisioning:
			provisioning++
		case s.State == sandbox.StateTerminating:
			terminating++
		}
	}
	created := int64(len(p.boxes))
	return providers.Stats{
		Active: &active, Provisioning: &provisioning, Terminating: &terminating,
		TotalCreated: &created, TotalDestroyed: &destroyed, TimedOut: &timedOut,
	}, nil
}

var _ providers.Prober = (*Provider)(nil)

// Probe says that what runs answers and what has ended does not.
func (p *Provider) Probe(ctx context.Context, id string) (providers.Health, error) {
	if _, err := p.request(ctx, OpProbe, id, 0); err != nil {
		return providers.Health{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpProbe, id)
	if err != nil {
		return providers.Health{}, err
	}
	now := p.o.Now()
	p.read(b, now)
	s := b.view(now)
	h := providers.Health{Verdict: sandbox.Unknown, Evidence: []sandbox.Evidence{
		{What: "state", Value: string(s.State), Source: p.o.Name, At: now},
	}}
	switch {
	case s.State == sandbox.StateRunning && b.dead:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionBroken
	case s.State == sandbox.StateRunning:
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	case s.State.Ended():
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
	case s.State == sandbox.StatePaused, s.State == sandbox.StateStopped:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
	case s.State == sandbox.StateProvisioning, s.State == sandbox.StateTerminating:
		h.Condition = providers.ConditionWait
	}
	return h, nil
}

var _ providers.Sweeper = (*Provider)(nil)

// Sweep brings the seeds that are Leftover to their end.
func (p *Provider) Sweep(ctx context.Context) (providers.Swept, error) {
	if _, err := p.request(ctx, OpSweep, "", 0); err != nil {
		return providers.Swept{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var swept providers.Swept
	for _, id := range p.order {
		b := p.boxes[id]
		if !b.leftover {
			continue
		}
		b.leftover, b.s.State, b.s.EndedAt = false, sandbox.StateFailed, p.o.Now()
		b.s.Exit = &sandbox.Exit{Class: sandbox.ClassInfra, Cause: sandbox.CauseSupervisorLost, Confidence: sandbox.Certain}
		swept.Refs = append(swept.Refs, b.s.Ref())
	}
	p.broadcast()
	return swept, nil
}

var _ providers.Checker = (*Provider)(nil)

// Check gives Options.Checks, or one that is in order.
func (p *Provider) Check(ctx context.Context) []providers.Check {
	if err := ctx.Err(); err != nil {
		return []providers.Check{{Check: "reachable", Verdict: sandbox.Unknown, Message: string(fault.KindOf(err))}}
	}
	if len(p.o.Checks) > 0 {
		return p.o.Checks
	}
	return []providers.Check{{Check: "reachable", Verdict: sandbox.True, Message: "in memory"}}
}
