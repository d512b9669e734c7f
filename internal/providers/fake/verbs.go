package fake

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

var _ providers.Provider = (*Provider)(nil)

// keptFor is how long an ended sandbox stays in a listing without Query.All
// (CLI.md, `ls --all`).
const keptFor = time.Hour

// List streams page by page; each page is one request.
func (p *Provider) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ids, flap := p.listed()
		for page, first := 1, true; first || len(ids) > 0; page, first = page+1, false {
			f, err := p.request(ctx, OpList, "", page)
			if err != nil {
				yield(sandbox.Sandbox{}, err)
				return
			}
			n := min(p.o.PageSize, len(ids))
			if f.Skip {
				ids = ids[n:]
				continue
			}
			for _, s := range p.page(ids[:n], q, flap) {
				if !yield(s, nil) {
					return
				}
			}
			ids = ids[n:]
		}
	}
}

// listed is the order of one listing, and whether this listing flaps.
func (p *Provider) listed() ([]string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listings++
	return slices.Clone(p.order), p.listings%2 == 1
}

func (p *Provider) page(ids []string, q providers.Query, flap bool) []sandbox.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	out := make([]sandbox.Sandbox, 0, len(ids))
	for _, id := range ids {
		b := p.boxes[id]
		p.read(b, now)
		s, shown := p.shown(b, now, flap)
		if !shown || !matches(s, q, now) {
			continue
		}
		out = append(out, s)
		if p.lied(LieListsTwice) {
			out = append(out, s)
		}
	}
	return out
}

// shown says whether a listing holds the box. The lock is held.
func (p *Provider) shown(b *box, now time.Time, flap bool) (sandbox.Sandbox, bool) {
	if now.Before(b.listed) {
		return sandbox.Sandbox{}, false
	}
	if p.remains(b, now) == AfterKept {
		return p.dressed(b, now), true
	}
	at, _ := b.ended(now)
	if !flap || now.Sub(at) >= p.o.Flap {
		return sandbox.Sandbox{}, false
	}
	s := b.s.Clone() // the stale page that a list cache still serves
	s.RawState = string(s.State)
	return s, true
}

func matches(s sandbox.Sandbox, q providers.Query, now time.Time) bool {
	if len(q.States) > 0 && !slices.Contains(q.States, s.State) {
		return false
	}
	if !q.All && s.State.Ended() && now.Sub(s.EndedAt) > keptFor {
		return false
	}
	for k, v := range q.Labels {
		if have, ok := s.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

// Get reads one sandbox by its id.
func (p *Provider) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if _, err := p.request(ctx, OpGet, id, 0); err != nil {
		return sandbox.Sandbox{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpGet, p.answers(id))
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	now := p.o.Now()
	p.read(b, now)
	return p.dressed(b, now), nil
}

// Terminate asks for the end; the sandbox is terminating until Options.EndFor
// has passed.
func (p *Provider) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	f, err := p.request(ctx, OpTerminate, id, 0)
	if err != nil {
		return err
	}
	if err := p.accept(id, o, f.Skip); err != nil || f.Skip {
		return err
	}
	return p.answer(ctx, f, OpTerminate, id)
}

func (p *Provider) accept(id string, o providers.TerminateOptions, skip bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, err := p.find(OpTerminate, id)
	if err != nil {
		return err
	}
	now := p.o.Now()
	if at, _ := b.ended(now); !at.IsZero() && !o.Delete && !p.lied(LieAnswersTwice) {
		return p.refuse(fault.KindGone, OpTerminate, id, "it has ended")
	}
	if skip {
		return nil
	}
	b.deleted = b.deleted || o.Delete
	if b.asked.IsZero() {
		b.asked, b.by = now, o.By
	}
	p.broadcast()
	return nil
}
