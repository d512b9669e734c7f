package fake

import (
	"context"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var (
	_ providers.UsageHistoryReader = (*Provider)(nil)
	_ providers.ProcessLister      = (*Provider)(nil)
)

// CapturesOutput is true unless Options.PartialLogs.
func (p *Provider) CapturesOutput(sandbox.Sandbox) bool { return !p.o.PartialLogs }

// historyStep is how far apart the samples of a history are.
const historyStep = 5 * time.Second

// UsageHistory gives the seed's figures, as they were every historyStep.
func (p *Provider) UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error) {
	if _, err := p.request(ctx, OpHistory, id, 0); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpHistory, id)
	if err != nil {
		return nil, err
	}
	var all []sandbox.Usage
	now := p.o.Now()
	for at := now.Add(-now.Sub(since).Truncate(historyStep)); b.usage != nil && !at.After(now); at = at.Add(historyStep) {
		u := b.usage(at)
		u.At = at
		all = append(all, u)
	}
	return all, nil
}

// Processes lists the commands that run in a sandbox, and with Options.PartialLogs
// its program.
func (p *Provider) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	if _, err := p.request(ctx, OpProcesses, id, 0); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpProcesses, id)
	if err != nil {
		return nil, err
	}
	if b.view(p.o.Now()).State != sandbox.StateRunning {
		return nil, nil
	}
	found := make([]providers.Process, 0, b.execs+1)
	for range b.execs {
		if p.lied(LieHidesCommands) {
			break
		}
		found = append(found, providers.Process{Args: []string{"exec"}})
	}
	if p.o.PartialLogs {
		found = append(found, providers.Process{PID: 1, Args: []string{"program"}})
	}
	return found, nil
}
