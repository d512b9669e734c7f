package fake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var (
	_ providers.UsageReader = (*Provider)(nil)
	_ providers.StatsReader = (*Provider)(nil)
)

// Usage is the seed's figures, or those of an idle program: 64 MiB and a tenth of a core. After the
// end every figure is unknown.
func (p *Provider) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	return readBox(ctx, p, OpUsage, id, func(b *box, now time.Time) (sandbox.Usage, error) {
		u := sandbox.Usage{}
		switch at, _ := b.endState(now); {
		case b.usage != nil:
			u = b.usage(now)
		case at.IsZero():
			u = idleUsage(b.toSandbox(now), now)
		}
		if p.hasLie(LieZeroUsage) {
			u.MemoryBytes, u.MemoryLimitBytes = new(int64), new(int64)
		}
		if u.At.IsZero() {
			u.At = now
		}
		u.Source = cmp.Or(u.Source, "fake")
		return u, nil
	})
}

func idleUsage(s sandbox.Sandbox, now time.Time) sandbox.Usage {
	u := sandbox.Usage{CPUSeconds: new(0.0), MemoryBytes: new(int64(64 * sandbox.MiB)), PIDs: new(int64(1)), MemoryLimitBytes: s.Limits.MemoryBytes}
	if !s.StartedAt.IsZero() {
		u.CPUSeconds = new(now.Sub(s.StartedAt).Seconds() / 10)
	}
	return u
}

// Stats counts all sandboxes, ended ones included.
func (p *Provider) Stats(ctx context.Context) (providers.Stats, error) {
	if _, err := p.beginRequest(ctx, OpStats, "", 0); err != nil {
		return providers.Stats{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var active, provisioning, terminating, destroyed, timedOut int64
	now := p.o.Now()
	for _, b := range p.boxes {
		s := b.toSandbox(now)
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

// Probe is healthy for a running sandbox.
func (p *Provider) Probe(ctx context.Context, id string) (providers.Health, error) {
	return readBox(ctx, p, OpProbe, id, func(b *box, now time.Time) (providers.Health, error) {
		s := b.toSandbox(now)
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
	})
}

var _ providers.Sweeper = (*Provider)(nil)

// Sweep ends the seeds that are Leftover.
func (p *Provider) Sweep(ctx context.Context) (providers.Swept, error) {
	if _, err := p.beginRequest(ctx, OpSweep, "", 0); err != nil {
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
	p.notifyChange()
	return swept, nil
}

var _ providers.Checker = (*Provider)(nil)

// Check is Options.Checks, or one without a finding.
func (p *Provider) Check(ctx context.Context) []providers.Check {
	if err := ctx.Err(); err != nil {
		return []providers.Check{{Check: "reachable", Verdict: sandbox.Unknown, Message: string(fault.KindOf(err))}}
	}
	if len(p.o.Checks) > 0 {
		return p.o.Checks
	}
	return []providers.Check{{Check: "reachable", Verdict: sandbox.True, Message: "in memory"}}
}

var (
	_ providers.UsageHistoryReader = (*Provider)(nil)
	_ providers.ProcessLister      = (*Provider)(nil)
)

// CapturesOutput is true unless Options.PartialLogs.
func (p *Provider) CapturesOutput(sandbox.Sandbox) bool { return !p.o.PartialLogs }

const historyStep = 5 * time.Second

// UsageHistory is the seed's figures of each historyStep.
func (p *Provider) UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error) {
	return readBox(ctx, p, OpHistory, id, func(b *box, now time.Time) (all []sandbox.Usage, err error) {
		for at := now.Add(-now.Sub(since).Truncate(historyStep)); b.usage != nil && !at.After(now); at = at.Add(historyStep) {
			u := b.usage(at)
			u.At = at
			all = append(all, u)
		}
		return all, nil
	})
}

// Processes lists the running commands of a sandbox, and with Options.PartialLogs its program.
func (p *Provider) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	return readBox(ctx, p, OpProcesses, id, func(b *box, now time.Time) (found []providers.Process, err error) {
		if b.toSandbox(now).State != sandbox.StateRunning {
			return nil, nil
		}
		if !p.hasLie(LieHidesCommands) {
			found = slices.Repeat([]providers.Process{{Args: []string{"exec"}}}, b.execs)
		}
		if p.o.PartialLogs {
			found = append(found, providers.Process{PID: 1, Args: []string{"program"}})
		}
		return found, nil
	})
}

var _ providers.EventReader = (*Provider)(nil)

// Events are the timestamps of a sandbox.
func (p *Provider) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	return readBox(ctx, p, OpEvents, id, func(b *box, now time.Time) ([]sandbox.Event, error) { return b.lifeEvents(now), nil })
}

func (b *box) lifeEvents(now time.Time) []sandbox.Event {
	s := b.toSandbox(now)
	var out []sandbox.Event
	add := func(at time.Time, event, detail string) {
		if !at.IsZero() {
			out = append(out, sandbox.Event{At: at, Event: event, Detail: detail})
		}
	}
	add(s.CreatedAt, "created", "")
	add(s.StartedAt, "started", "")
	if over, exit := b.programEnd(now); b.keepAfterExit && exit != nil && (s.EndedAt.IsZero() || !over.After(s.EndedAt)) {
		add(over, "exited", string(exit.Class))
	}
	add(b.asked, "terminate", b.by)
	if s.Exit != nil {
		add(s.EndedAt, "ended", string(s.Exit.Class))
	}
	slices.SortStableFunc(out, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return out
}
