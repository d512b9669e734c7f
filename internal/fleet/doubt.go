package fleet

import (
	"context"
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// doubts is what one Find looks up about words that a GET did not find: each
// profile's listing at most once, and the requests that are kept.
type doubts struct {
	f    *Fleet
	kept *kept

	mu    sync.Mutex
	lists map[*member]func() Listing
}

func (f *Fleet) newDoubts() *doubts {
	return &doubts{f: f, kept: f.requests(), lists: map[*member]func() Listing{}}
}

// list is the complete listing of one profile, or what there is of it.
func (d *doubts) list(ctx context.Context, m *member) Listing {
	d.mu.Lock()
	if d.lists[m] == nil {
		one := &Fleet{members: []*member{m}, o: d.f.o, note: d.f.note, matcher: d.f.matcher}
		d.lists[m] = sync.OnceValue(func() Listing { return one.Collect(ctx, providers.Query{All: true}) })
	}
	list := d.lists[m]
	d.mu.Unlock()
	return list()
}

// doubt looks at the listing before a 404 about one id is believed.
func (a *query) doubt(ctx context.Context, o FindOptions, d *doubts) {
	l := d.list(ctx, a.at)
	i := slices.IndexFunc(l.Items, func(s sandbox.Sandbox) bool { return a.at.sameID(a.ref.ID, s.ID) })
	switch {
	case i >= 0:
		a.found, a.err = l.Items[i], nil
	case !l.Complete():
		a.err = fault.New(unavailableOr(l.Err()), "%w; and whether it is listed is not known: %s", a.err, oneLine(l.Err())).At(a.at.Provider.Name(), "")
	case o.Destructive:
		a.askedBefore(ctx, []*member{a.at}, d)
	}
}

// askedBefore finds what no provider finds any more and what was asked to end by a
// request that nobody acknowledged: ending it is not done.
func (a *query) askedBefore(ctx context.Context, members []*member, d *doubts) {
	for _, m := range members {
		ref := sandbox.Ref{Provider: m.Provider.Name(), ID: a.ref.ID}
		if r, _ := d.kept.of(ctx, ref); r != nil { // what cannot be read is not found
			a.found = sandbox.Sandbox{Provider: ref.Provider, ProviderType: m.Provider.Type(), ID: ref.ID, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt}
			a.err = nil
			return
		}
	}
}

// unavailableOr is the kind of an answer that hangs on a listing which failed.
func unavailableOr(err error) fault.Kind {
	if k := fault.KindOf(err); k == fault.KindCanceled || k == fault.KindTimeout {
		return k
	}
	return fault.KindUnavailable
}
