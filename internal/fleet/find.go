package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// FindOptions say what the finding is for.
type FindOptions struct {
	// Destructive refuses every bare word while any provider could not be
	// listed: the word might mean one that is not seen (CLI.md, REF).
	Destructive bool
}

// Find looks words up as references (CLI.md, REF): `profile/id` costs one GET,
// and where that finds nothing a listing, since a 404 may be a trouble of the API's;
// all bare words together cost one listing, where an exact id wins over an
// exact name, and that over a unique id prefix of sandbox.MinPrefix.
//
// The sandboxes come in the order of the words, each once. Words that were not
// found are joined in the error, one *fault.Error each: KindNotFound,
// KindUnavailable where a provider could not be asked, KindGone. An ill-formed
// or ambiguous word or an unknown profile is KindUsage, and then no sandbox is
// returned.
//
// With Destructive, one that the provider proves to be gone, or that nobody finds
// after a request to end it that was not acknowledged, is returned with
// its reference alone and no state: ending it is already_gone. One of which it
// can read nothing (providers.ErrUnreadable) comes with the state unknown.
func (f *Fleet) Find(ctx context.Context, words []string, o FindOptions) ([]sandbox.Sandbox, error) {
	found, err := f.FindEach(ctx, words, o)
	var sandboxes []sandbox.Sandbox
	for _, one := range found {
		sandboxes = append(sandboxes, one.Sandbox)
	}
	return sandboxes, err
}

// Found is a sandbox that words mean.
type Found struct {
	sandbox.Sandbox

	Words []string // all that mean it, in their order
	// Unreadable says that it is there and that nothing of it could be read but its id.
	Unreadable bool
}

// FindEach is Find with the words that mean each sandbox.
func (f *Fleet) FindEach(ctx context.Context, words []string, o FindOptions) ([]Found, error) {
	asked, err := f.parse(words)
	if err != nil {
		return nil, err
	}
	f.lookUp(ctx, asked, o)
	var found []Found
	var refused, errs []error
	for _, a := range asked {
		switch {
		case a.err == nil:
			i := slices.IndexFunc(found, func(s Found) bool { return s.Ref() == a.found.Ref() })
			if i < 0 {
				i, found = len(found), append(found, Found{Sandbox: a.found})
			}
			found[i].Words = append(found[i].Words, a.word)
			found[i].Unreadable = found[i].Unreadable || a.unreadable
		case fault.KindOf(a.err) == fault.KindUsage:
			refused = append(refused, a.err)
		default:
			errs = append(errs, a.err)
		}
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	return found, errors.Join(errs...)
}

// query is one word and what became of it.
type query struct {
	word  string
	ref   sandbox.Ref
	at    *member // nil for a bare word
	found sandbox.Sandbox
	err   error

	unreadable bool // found holds its reference alone
}

// parse checks every word before anything is called.
func (f *Fleet) parse(words []string) ([]*query, error) {
	var asked []*query
	var errs []error
	for _, word := range words {
		ref, err := sandbox.ParseRef(word)
		if err != nil {
			errs = append(errs, fault.Usage("%w", err).WithHint("write an id, a name or profile/id; `sbx ls -o name` prints them"))
			continue
		}
		q := &query{word: word, ref: ref}
		if !ref.Bare() {
			if q.at, err = f.member(ref.Provider); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		asked = append(asked, q)
	}
	return asked, errors.Join(errs...)
}

// lookUp asks for the full references and, beside that, lists once for the
// bare words.
func (f *Fleet) lookUp(ctx context.Context, asked []*query, o FindOptions) {
	var wg sync.WaitGroup
	var bare []*query
	doubts := f.newDoubts()
	for _, a := range asked {
		if a.at == nil {
			bare = append(bare, a)
			continue
		}
		wg.Go(func() { a.get(ctx, o, doubts) })
	}
	if len(bare) > 0 {
		l := f.Collect(ctx, providers.Query{All: true})
		for _, a := range bare {
			if a.found, a.err = f.pick(l, a.ref.ID, o); o.Destructive && fault.KindOf(a.err) == fault.KindNotFound {
				a.askedBefore(ctx, f.members, doubts)
			}
		}
	}
	wg.Wait()
}

func (a *query) get(ctx context.Context, o FindOptions, doubts *doubts) {
	a.found, a.err = a.at.resolve(ctx, a.ref.ID)
	if fault.KindOf(a.err) == fault.KindNotFound {
		a.doubt(ctx, o, doubts)
		return
	}
	bare := sandbox.Sandbox{Provider: a.ref.Provider, ProviderType: a.at.Provider.Type(), ID: a.ref.ID}
	switch {
	case !o.Destructive:
	case fault.KindOf(a.err) == fault.KindGone:
		a.found, a.err = bare, nil
	case errors.Is(a.err, providers.ErrUnreadable):
		bare.State = sandbox.StateUnknown
		a.found, a.err, a.unreadable = bare, nil, true
	}
}

// pick chooses from a listing what a bare word means.
func (f *Fleet) pick(l Listing, word string, o FindOptions) (sandbox.Sandbox, error) {
	if o.Destructive && !l.Complete() {
		return sandbox.Sandbox{}, unsure(l, word)
	}
	matches := match(l.Items, word)
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return sandbox.Sandbox{}, ambiguous(word, matches)
	case !l.Complete():
		return sandbox.Sandbox{}, unsure(l, word)
	}
	return sandbox.Sandbox{}, fault.New(fault.KindNotFound, "no sandbox is called %q", word).
		WithHint("asked: %s; `sbx ls --all` shows what there is", strings.Join(f.Names(), ", "))
}
