package fleet

import (
	"context"
	"iter"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// getByID is the one place where a sandbox is read by its id. An answer about
// another one is fault.KindUnavailable. The id of what comes back is spelled as it
// was asked for, so that nothing is asked later of an id that was not selected.
func (m *member) getByID(ctx context.Context, id string) (sandbox.Sandbox, error) {
	got, err := m.read(ctx, id)
	switch {
	case err != nil:
		return got, err
	case !m.sameID(id, got.ID):
		return sandbox.Sandbox{}, providers.WrongSandbox(m.Provider.Name(), "get "+id, id, got.ID)
	}
	got.ID = id
	return got, nil
}

// stamped notes with a sandbox what its own record does not say: how far the clock is
// off that its times come from, and until when sbx keeps it. Every sandbox that a
// provider lists or reads passes here.
func (m *member) stamped(s sandbox.Sandbox) sandbox.Sandbox {
	if !s.State.Ended() { // what stopped or was paused meanwhile is kept as well
		s.KeptUntil = m.keptUntil(s)
	}
	if clock, ok := providers.As[providers.Clock](m.Provider); ok {
		s.ClockSkew, _ = clock.Skew()
	}
	return s
}

// read is the one place where a provider's Get is called. What labels say, and how far the
// clock is off, is added here and in rows, for all providers alike.
func (m *member) read(ctx context.Context, word string) (sandbox.Sandbox, error) {
	got, err := m.Provider.Get(ctx, word)
	return m.stamped(m.Metadata.Read(got)), err
}

// rows is the one place where a provider's List is called. It keeps the counts of a
// listing that was read to its end.
func (m *member) rows(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		count, complete, now := newListingCount(), everything(q), m.now()
		for s, err := range m.Provider.List(ctx, q) {
			s = m.stamped(m.Metadata.Read(s))
			if err != nil {
				complete = false
			} else {
				count.add(s, now)
			}
			if !yield(s, err) {
				return
			}
		}
		if complete {
			m.listing.keep(count)
		}
	}
}

// resolve is getByWord in a slot.
func (m *member) resolve(ctx context.Context, word string) (sandbox.Sandbox, error) {
	return call(ctx, m, "get "+word, func(ctx context.Context) (sandbox.Sandbox, error) { return m.getByWord(ctx, word) })
}

// getByWord reads what a reference names in which a person has written the profile:
// an id or, where the provider's Get takes them, a name.
func (m *member) getByWord(ctx context.Context, word string) (sandbox.Sandbox, error) {
	got, err := m.read(ctx, word)
	if err != nil || m.sameID(word, got.ID) {
		return got, err
	}
	if n, ok := providers.As[providers.NameReader](m.Provider); ok && n.TakesName(word) {
		return got, nil
	}
	return sandbox.Sandbox{}, providers.WrongSandbox(m.Provider.Name(), "get "+word, word, got.ID)
}

// endsFailed says that a failed sandbox of this provider is ended by a delete.
func (m *member) endsFailed() bool {
	e, ok := providers.As[providers.FailedEnder](m.Provider)
	return ok && e.EndsFailed()
}

// EndsFailed says that failed sandboxes of a profile stay until they are deleted, and
// keep nothing that a delete would destroy.
func (f *Fleet) EndsFailed(profile string) bool {
	m, err := f.member(profile)
	return err == nil && m.endsFailed()
}

// ReadsProveEnds says that what the reads of a profile say of an end is the state of the
// machine itself: there is no providers.Verifier, and nothing to be proved beside.
func (f *Fleet) ReadsProveEnds(profile string) bool {
	m, err := f.member(profile)
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
