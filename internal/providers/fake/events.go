package fake

import (
	"context"
	"slices"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.EventReader = (*Provider)(nil)

// Events tells the life of a sandbox from its timestamps.
func (p *Provider) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	if _, err := p.request(ctx, OpEvents, id, 0); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpEvents, id)
	if err != nil {
		return nil, err
	}
	now := p.o.Now()
	p.read(b, now)
	return b.events(now), nil
}

func (b *box) events(now time.Time) []sandbox.Event {
	s := b.view(now)
	var out []sandbox.Event
	add := func(at time.Time, event, detail string) {
		if !at.IsZero() {
			out = append(out, sandbox.Event{At: at, Event: event, Detail: detail})
		}
	}
	add(s.CreatedAt, "created", "")
	add(s.StartedAt, "started", "")
	if over, exit := b.finished(now); b.linger && exit != nil && (s.EndedAt.IsZero() || !over.After(s.EndedAt)) {
		add(over, "exited", string(exit.Class))
	}
	add(b.asked, "terminate", b.by)
	if s.Exit != nil {
		add(s.EndedAt, "ended", string(s.Exit.Class))
	}
	slices.SortStableFunc(out, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return out
}
