package fleet

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// listBuffer is how many listed sandboxes may wait for the consumer: more than two pages of
// every provider (at most 200 rows each), so that the next page is fetched while rows are
// printed.
const listBuffer = 512

// List streams the sandboxes of every provider in the order of arrival. The failure of one
// provider is one *fault.Error in the stream, with Provider set, and does not end the
// others; a provider that is silent for its timeout fails alone. The listing is complete
// when no error was seen.
//
// When the consumer stops, every provider has been stopped before the loop ends.
func (f *Fleet) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		found := make(chan listItem, listBuffer)
		var readers sync.WaitGroup
		for _, m := range f.members {
			readers.Go(func() { m.streamTo(ctx, q, found, stop) })
		}
		go func() {
			readers.Wait()
			close(found)
		}()
		forward(found, func() { close(stop); cancel() }, func(l listItem) bool { return yield(l.item, l.err) })
	}
}

// forward yields the items of a channel until it is closed or the consumer stops. Then it
// calls stop and discards the rest: the channel is closed once every sender has returned.
func forward[T any](items <-chan T, stop func(), yield func(T) bool) {
	defer func() {
		stop()
		for range items {
			continue
		}
	}()
	for item := range items {
		if !yield(item) {
			return
		}
	}
}

type listItem struct {
	item sandbox.Sandbox
	err  error
}

// streamTo sends one provider's listing until it ends or stop is closed. The end of ctx
// does not stop it: its error still has to be sent.
func (m *member) streamTo(ctx context.Context, q providers.Query, found chan<- listItem, stop <-chan struct{}) {
	for item, err := range m.streamRows(ctx, "list", q) {
		select {
		case found <- listItem{item, err}:
		case <-stop:
			return
		}
	}
}

func (m *member) streamRows(ctx context.Context, op string, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	rows := streamWithTimeout(ctx, m, op, func(ctx context.Context) iter.Seq2[sandbox.Sandbox, error] { return m.listRows(ctx, q) })
	if !coversAll(q) {
		return rows
	}
	return m.answers.noteListing(ctx, m.now, rows)
}

// Listing is the result of a listing that was read to its end.
type Listing struct {
	Items  []sandbox.Sandbox
	Errors []error // each a *fault.Error with Provider set
}

// Complete reports whether every provider listed everything. What is missing from an
// incomplete listing may exist.
func (l Listing) Complete() bool { return len(l.Errors) == 0 }

// Err joins the errors: fault.KindPartial where kinds differ.
func (l Listing) Err() error { return errors.Join(l.Errors...) }

// Collect reads a listing to its end.
func (f *Fleet) Collect(ctx context.Context, q providers.Query) Listing {
	return f.CollectWith(ctx, q, nil)
}

// CollectWith is Collect that tells how many it has; nil = nobody.
func (f *Fleet) CollectWith(ctx context.Context, q providers.Query, listed func(n int)) Listing {
	var l Listing
	for item, err := range f.List(ctx, q) {
		if err != nil {
			l.Errors = append(l.Errors, err)
			continue
		}
		l.Items = append(l.Items, item)
		if listed != nil {
			listed(len(l.Items))
		}
	}
	return l
}

// collectShared reads the listing of one profile to its end: see Fleet.LiveStats.
func (m *member) collectShared(rows iter.Seq2[sandbox.Sandbox, error]) ([]*sandbox.Sandbox, error) {
	m.listing.mu.Lock()
	before := m.listing.shared
	m.listing.mu.Unlock()
	known := make(map[string]*sandbox.Sandbox, len(before))
	for _, s := range before {
		known[s.ID] = s
	}
	var errs []error
	all := make([]*sandbox.Sandbox, 0, len(before)+len(before)/16)
	for item, err := range rows {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s := known[item.ID]
		if s == nil || !s.Equal(&item) {
			s = new(item)
		}
		all = append(all, s)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	m.listing.mu.Lock()
	defer m.listing.mu.Unlock()
	m.listing.shared = all
	return all, nil
}

// getByID is the one place where a sandbox is read by its id. A response about another
// sandbox is fault.KindUnavailable. The returned id is spelled as requested, so that no
// later request uses an id that was not selected.
func (m *member) getByID(ctx context.Context, id string) (sandbox.Sandbox, error) {
	got, err := m.readSandbox(ctx, id)
	switch {
	case err != nil:
		return got, err
	case !m.sameID(id, got.ID):
		return sandbox.Sandbox{}, providers.WrongSandbox(m.Provider.Name(), "get "+id, id, got.ID)
	}
	got.ID = id
	return got, nil
}

// addLocalFacts adds what the sandbox's own record does not say: the skew of the clock of
// its times, until when sbx keeps it, and since when sbx has seen it end. Every sandbox that a provider lists or reads
// passes here.
func (m *member) addLocalFacts(ctx context.Context, s sandbox.Sandbox) sandbox.Sandbox {
	if !s.State.Ended() { // a stopped or paused sandbox is kept as well
		s.KeptUntil = m.keptUntil(s)
	}
	if s.State == sandbox.StateTerminating && s.EndingAt.IsZero() {
		s.EndingSeenAt = m.history.EndingSince(ctx, s.Ref())
	}
	if clock, ok := providers.As[providers.Clock](m.Provider); ok {
		if skew, _ := clock.Skew(); skew.Abs() >= s.ClockSkew.Abs() { // the times of one sandbox may contradict each other by more
			s.ClockSkew = skew
		}
	}
	return s
}

// readSandbox is the one place where a provider's Get is called. Here and in listRows, the
// facts of labels and clock are added for all providers alike.
func (m *member) readSandbox(ctx context.Context, word string) (sandbox.Sandbox, error) {
	got, err := m.Provider.Get(ctx, word)
	if err == nil && m.hides(got) {
		return sandbox.Sandbox{}, m.hiddenError(word)
	}
	return m.addLocalFacts(ctx, m.Metadata.Read(got)), err
}

// listRows is the one place where a provider's List is called. It keeps the counts of a
// listing that was read to its end.
func (m *member) listRows(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		complete, now, names, room := coversAll(q) && m.shows == nil, m.now(), keepNames{}, 0
		if complete {
			names.cache, room = m.names, m.listing.rows()
			names.names = slices.Grow(names.names, min(room, maxCachedNames))
		}
		count, before := newListingCount(room), m.lastRows(q)
		for s, err := range m.Provider.List(ctx, q) {
			if err == nil && m.hides(s) {
				continue
			}
			s = m.addLocalFacts(ctx, m.Metadata.Read(s))
			if err != nil {
				complete = false
			} else {
				count.add(&s, now)
				names.add(s)
				delete(before, s.ID)
			}
			if !yield(s, err) {
				return
			}
		}
		if complete {
			m.listing.keepCount(count)
			m.listing.keepUnlisted(before)
			m.history.ListingSeen(m.Provider.Name(), count.states, count.failed, count.ending)
			names.write(m.Provider.Name())
		}
	}
}

func (m *member) resolveInSlot(ctx context.Context, word string) (sandbox.Sandbox, error) {
	return callInSlot(ctx, m, "get "+word, func(ctx context.Context) (sandbox.Sandbox, error) { return m.getByWord(ctx, word) })
}

// getByWord reads what a reference written by a person refers to: an id or, where the
// provider's Get accepts them, a name.
func (m *member) getByWord(ctx context.Context, word string) (sandbox.Sandbox, error) {
	got, err := m.readSandbox(ctx, word)
	if err != nil || m.sameID(word, got.ID) {
		return got, err
	}
	if n, ok := providers.As[providers.NameReader](m.Provider); ok && n.TakesName(word) {
		return got, nil
	}
	return sandbox.Sandbox{}, providers.WrongSandbox(m.Provider.Name(), "get "+word, word, got.ID)
}

// endsFailed reports whether a failed sandbox of this provider is ended by a delete.
func (m *member) endsFailed() bool {
	e, ok := providers.As[providers.FailedEnder](m.Provider)
	return ok && e.EndsFailed()
}

// EndsFailed reports whether failed sandboxes of a profile exist until they are deleted, and
// keep nothing that a delete would destroy.
func (f *Fleet) EndsFailed(profile string) bool {
	m, err := f.findMember(profile)
	return err == nil && m.endsFailed()
}

// ReadsProveEnds reports whether the reads of a profile show the state of the machine
// itself: there is no providers.Verifier, and no further proof is needed.
func (f *Fleet) ReadsProveEnds(profile string) bool {
	m, err := f.findMember(profile)
	if err != nil {
		return false
	}
	if _, closed := m.Provider.(*providers.Unopened); closed {
		return false
	}
	_, needsProof := providers.As[providers.Verifier](m.Provider)
	return !needsProof
}

func (m *member) sameID(asked, answered string) bool {
	if s, ok := providers.As[providers.IDSpeller](m.Provider); ok {
		return s.SameID(asked, answered)
	}
	return asked == answered
}
