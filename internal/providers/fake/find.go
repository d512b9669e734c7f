package fake

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// find gives the box behind an id, or the error that a read of it deserves. The
// lock is held.
func (p *Provider) find(op Op, id string) (*box, error) {
	b, ok := p.boxes[id]
	if !ok {
		kind := fault.KindNotFound
		if p.lied(LieGoneForUnknown) {
			kind = fault.KindGone
		}
		return nil, p.refuse(kind, op, id, "no such sandbox")
	}
	switch p.remains(b, p.o.Now()) {
	case AfterGone:
		return nil, p.refuse(fault.KindGone, op, id, "it has ended")
	case AfterMissing:
		return nil, p.refuse(fault.KindNotFound, op, id, "no such sandbox")
	case AfterKept:
	}
	return b, nil
}

// Orphan forgets a sandbox whose machine runs on, as an API does whose node has
// refused to end it: no read and no proof shows it any more.
func (p *Provider) Orphan(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, id)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == id })
	p.broadcast()
}

// answers is the id of the box whose record answers a get of id. The lock is held.
func (p *Provider) answers(id string) string {
	if p.lied(LieOtherID) {
		for _, other := range p.order {
			if other != id {
				return other
			}
		}
	}
	return id
}

// remains says what is left of a box now; a living one is kept. The lock is
// held.
func (p *Provider) remains(b *box, now time.Time) After {
	at, _ := b.ended(now)
	switch {
	case at.IsZero():
		return AfterKept
	case b.deleted && p.o.After == AfterKept:
		return AfterMissing
	case b.s.State.Ended() && !b.deleted:
		return AfterKept // added as ended: a record that the provider keeps
	}
	return p.o.After
}

// dressed is the view with the lies about it. The lock is held.
func (p *Provider) dressed(b *box, now time.Time) sandbox.Sandbox {
	s := b.view(now)
	if p.lied(LieShowEnv) && len(b.env) > 0 {
		s.Labels = map[string]string{"env": b.env[0]}
	}
	return s
}
