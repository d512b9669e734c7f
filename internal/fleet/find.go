package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// FindOptions are the options of Find.
type FindOptions struct {
	// Destructive refuses every bare word while any provider could not be listed: the
	// word might mean a sandbox of that provider.
	Destructive bool
	// Typed are the words that a person typed, nil = all: a wrong one of them refuses all, since a
	// typing error may mean another sandbox. A wrong one that a pipe brought fails alone: one odd
	// id of an API must not keep the others.
	Typed []string
	// Full refuses the beginning of an id, and says what to write: nobody can be asked what it means.
	Full bool
}

func (o FindOptions) typed(word string) bool { return o.Typed == nil || slices.Contains(o.Typed, word) }

// Find resolves references, with a profile and without by one rule: an exact id precedes an exact name,
// that an exact task of another application, and that a unique id prefix of sandbox.MinPrefix (see
// FindOptions.Full). `profile/id` costs one GET, and a listing where that finds nothing, since a 404 may
// be a fault of the API; all bare words together cost one listing.
//
// Each sandbox is returned once, in the order of the words. Words that were not found are
// joined in the error, one *fault.Error each: KindNotFound, KindUnavailable where a provider
// did not answer, KindGone. A malformed or ambiguous word, an unknown profile or an id that its
// provider refuses is KindUsage, and then no sandbox is returned; see FindOptions.Typed.
//
// With Destructive, a sandbox that is provably gone, or that no provider finds after a request
// to end it that is on record, is returned with its reference alone and no state:
// ending it is already_gone. One whose record is unreadable (providers.ErrUnreadable) has
// the state unknown.
func (f *Fleet) Find(ctx context.Context, words []string, o FindOptions) ([]sandbox.Sandbox, error) {
	found, err := f.FindEach(ctx, words, o)
	var sandboxes []sandbox.Sandbox
	for _, one := range found {
		sandboxes = append(sandboxes, one.Sandbox)
	}
	return sandboxes, err
}

// Found is a sandbox with the words that refer to it.
type Found struct {
	sandbox.Sandbox

	Words []string // all words that refer to it, in their order
	// Unreadable says that it exists and only its id could be read.
	Unreadable bool
	// Begun says that each of the words is only the beginning of its id.
	Begun bool
}

// FindEach is Find with the words that refer to each sandbox.
func (f *Fleet) FindEach(ctx context.Context, words []string, o FindOptions) ([]Found, error) {
	asked, err := f.parseRefs(words, o)
	if err != nil {
		return nil, err
	}
	f.lookUpAll(ctx, asked, o)
	var found []Found
	var refused, errs []error
	for _, a := range asked {
		switch {
		case a.err == nil:
			i := slices.IndexFunc(found, func(s Found) bool { return s.Ref() == a.found.Ref() })
			if i < 0 {
				i, found = len(found), append(found, Found{Sandbox: a.found, Begun: true})
			}
			found[i].Words = append(found[i].Words, a.word)
			found[i].Unreadable = found[i].Unreadable || a.unreadable
			found[i].Begun = found[i].Begun && a.begun
		case fault.KindOf(a.err) == fault.KindUsage && !o.typed(a.word):
			errs = append(
				errs, fault.Usage("standard input: %w", a.err).WithHint("it was left out; %s", cmp.Or(fault.HintOf(a.err), "`sbx ls -o json` shows it as it is")),
			)
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

// lookup is one word and its result.
type lookup struct {
	word   string
	ref    sandbox.Ref
	member *member // nil for a bare word
	found  sandbox.Sandbox
	err    error

	unreadable bool // found has its reference alone
	begun      bool // the word is only the beginning of the id of found
}

// parseRefs checks every word before any request.
func (f *Fleet) parseRefs(words []string, o FindOptions) ([]*lookup, error) {
	var asked []*lookup
	var errs []error
	for _, word := range words {
		q := &lookup{word: word}
		if q.ref, q.err = sandbox.ParseRef(word); q.err != nil {
			q.err = fault.Usage("%w", q.err).WithHint("write an id, a name or profile/id; `sbx ls -o name` prints them")
		} else if !q.ref.Bare() {
			q.member, q.err = f.findMember(q.ref.Provider)
		}
		if asked = append(asked, q); q.err != nil && o.typed(word) {
			errs = append(errs, q.err)
		}
	}
	return asked, errors.Join(errs...)
}

// lookUpAll reads the full references and, concurrently, lists once for the bare words.
func (f *Fleet) lookUpAll(ctx context.Context, asked []*lookup, o FindOptions) {
	var wg sync.WaitGroup
	var bare []*lookup
	fallback := &findFallback{f: f, requests: f.newRequestCache(), listings: map[*member]func() Listing{}}
	for _, a := range asked {
		if a.err != nil {
			continue
		}
		if a.member == nil {
			bare = append(bare, a)
			continue
		}
		wg.Go(func() { a.resolveRef(ctx, o, fallback) })
	}
	if len(bare) > 0 {
		l := f.Collect(ctx, providers.Query{All: true})
		for _, a := range bare {
			f.matchBare(ctx, a, l, o, fallback)
		}
	}
	wg.Wait()
}

func (a *lookup) resolveRef(ctx context.Context, o FindOptions, fallback *findFallback) {
	a.found, a.err = a.member.resolveInSlot(ctx, a.ref.ID)
	denied := a.err
	if showsAbsence(denied) {
		a.checkListing(ctx, o, fallback)
	}
	bare := sandbox.Sandbox{Provider: a.ref.Provider, ProviderType: a.member.Provider.Type(), ID: a.ref.ID}
	switch {
	case !o.Destructive:
	case fault.KindOf(denied) == fault.KindGone && showsAbsence(a.err):
		a.found, a.err = bare, nil
	case errors.Is(a.err, providers.ErrUnreadable):
		bare.State = sandbox.StateUnknown
		a.found, a.err, a.unreadable = bare, nil, true
	}
}

// matchBare chooses the sandbox that a bare word refers to. What an earlier request was to end precedes the
// beginning of another id: a script that ends `job-1` a second time must not end `job-10`.
func (f *Fleet) matchBare(ctx context.Context, a *lookup, l Listing, o FindOptions, d *findFallback) {
	if o.Destructive && !l.Complete() {
		a.err = incompleteError(l, a.ref.ID)
		return
	}
	matches, begun := MatchRef(l.Items, a.ref)
	if a.err = f.noneError(l, a.ref.ID, o); o.Destructive && (begun || len(matches) == 0) {
		a.matchEndRequest(ctx, f.members, d)
	}
	if a.err != nil && len(matches) > 0 {
		a.choose(matches, begun, o)
	}
}

// choose takes the only match of a word.
func (a *lookup) choose(matches []sandbox.Sandbox, begun bool, o FindOptions) {
	switch {
	case len(matches) > 1:
		a.err = ambiguousError(a.word, matches)
	case begun && o.Full:
		a.err = fault.Usage("%q is only the beginning of an id", a.word).
			WithHint("write %s; the beginning is enough where a terminal asks whether it is meant", matches[0].Ref())
	default:
		a.found, a.err, a.begun = matches[0], nil, begun
	}
}

// noneError is why no sandbox matches a bare word.
func (f *Fleet) noneError(l Listing, word string, o FindOptions) error {
	if !l.Complete() {
		return incompleteError(l, word)
	}
	none := fault.New(fault.KindNotFound, "no sandbox matches %q", word)
	switch {
	case slices.Contains(f.Names(), word):
		return none.WithHint("%s is a profile: `--provider %s` limits a verb to it", word, word)
	case !strings.HasPrefix(word, sandbox.TaskIDPrefix):
	case o.Destructive:
		return none.WithHint("%s looks like a task: `sbx stop %s` stops it", word, word)
	default:
		return none.WithHint("%s looks like a task: `sbx tasks show %s` shows it", word, word)
	}
	if short := shortWord(word); short != "" {
		return none.WithHint("%s; `sbx ls --all` lists all of them", short)
	}
	return none.
		WithHint("searched: %s; `sbx ls --all` lists all of them", strings.Join(f.Names(), ", "))
}

// findFallback is what one Find looks up about words that a GET did not find: each
// profile's listing at most once, and the recorded requests to end a sandbox.
type findFallback struct {
	f        *Fleet
	requests *requestCache

	mu       sync.Mutex
	listings map[*member]func() Listing
}

func (d *findFallback) listOnce(ctx context.Context, m *member) Listing {
	d.mu.Lock()
	if d.listings[m] == nil {
		one := d.f.withMembers([]*member{m})
		d.listings[m] = sync.OnceValue(func() Listing { return one.Collect(ctx, providers.Query{All: true}) })
	}
	list := d.listings[m]
	d.mu.Unlock()
	return list()
}

// checkListing looks for the id in the listing before a 404 or a 410 is accepted.
func (a *lookup) checkListing(ctx context.Context, o FindOptions, d *findFallback) {
	l := d.listOnce(ctx, a.member)
	i := slices.IndexFunc(l.Items, func(s sandbox.Sandbox) bool { return a.member.sameID(a.ref.ID, s.ID) })
	switch {
	case i >= 0:
		a.found, a.err = l.Items[i], nil
	case !l.Complete():
		a.err = fault.New(unavailableKind(l.Err()), "%w; and it is unknown whether it is listed: %s", a.err, joinErrorLines(l.Err())).At(a.member.Provider.Name(), "")
	default:
		gone := fault.KindOf(a.err) == fault.KindGone // the whole id was known
		if o.Destructive {
			a.matchEndRequest(ctx, []*member{a.member}, d)
		}
		if matches, begun := MatchRef(l.Items, a.ref); a.err != nil && !gone && len(matches) > 0 {
			a.choose(matches, begun, o)
		}
	}
}

// matchEndRequest finds a sandbox that no provider finds any more and that an earlier request
// was to end: its end is not proved yet.
func (a *lookup) matchEndRequest(ctx context.Context, members []*member, d *findFallback) {
	for _, m := range members {
		ref := sandbox.Ref{Provider: m.Provider.Name(), ID: a.ref.ID}
		if r, _ := d.requests.find(ctx, ref); r != nil { // a read error counts as not found
			a.found = sandbox.Sandbox{Provider: ref.Provider, ProviderType: m.Provider.Type(), ID: ref.ID, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt}
			a.err = nil
			return
		}
	}
}

// unavailableKind is the kind of a result that depends on a failed listing.
func unavailableKind(err error) fault.Kind {
	if k := fault.KindOf(err); k == fault.KindCanceled || k == fault.KindTimeout {
		return k
	}
	return fault.KindUnavailable
}

// MatchRef returns the sandboxes that a reference may mean, with a profile or without, by the rule of Find. Begun = it is
// only the beginning of their ids.
func MatchRef(items []sandbox.Sandbox, ref sandbox.Ref) (found []sandbox.Sandbox, begun bool) {
	if !ref.Bare() {
		items = slices.DeleteFunc(slices.Clone(items), func(s sandbox.Sandbox) bool { return s.Provider != ref.Provider })
	}
	return matchWord(items, ref.ID)
}

// matchWord returns the sandboxes that a word may refer to, by the first rule with any match: exact id, exact
// name, exact task of another application, id prefix (begun). A task of sbx has verbs of its own, so its id
// is none of its sandbox. Names and tasks come again, so the only one that has not ended is meant.
func matchWord(items []sandbox.Sandbox, word string) (found []sandbox.Sandbox, begun bool) {
	rules := []func(sandbox.Sandbox) bool{
		func(s sandbox.Sandbox) bool { return s.ID == word },
		func(s sandbox.Sandbox) bool { return s.Name == word },
		func(s sandbox.Sandbox) bool {
			return s.TaskID == word && !strings.HasPrefix(word, sandbox.TaskIDPrefix)
		},
		func(s sandbox.Sandbox) bool {
			return utf8.RuneCountInString(word) >= sandbox.MinPrefix && strings.HasPrefix(s.ID, word)
		},
	}
	for i, fits := range rules {
		if found := distinctWhere(items, fits); len(found) > 0 {
			return preferLive(found, word), i == len(rules)-1
		}
	}
	return nil, false
}

func preferLive(found []sandbox.Sandbox, word string) []sandbox.Sandbox {
	live := slices.DeleteFunc(slices.Clone(found), func(s sandbox.Sandbox) bool { return s.State.Ended() })
	if len(live) == 1 && live[0].ID != word && (live[0].Name == word || live[0].TaskID == word) {
		return live
	}
	return found
}

// distinctWhere returns the sandboxes for which fits is true, each once: a listing that
// changes while it is read may contain one twice.
func distinctWhere(items []sandbox.Sandbox, fits func(sandbox.Sandbox) bool) []sandbox.Sandbox {
	var found []sandbox.Sandbox
	seen := map[sandbox.Ref]bool{}
	for _, s := range items {
		if fits(s) && !seen[s.Ref()] {
			seen[s.Ref()] = true
			found = append(found, s)
		}
	}
	return found
}

// shownMatches is how many ambiguous matches an error names.
const shownMatches = 5

func ambiguousError(word string, matches []sandbox.Sandbox) error {
	return fault.Usage("%q matches %d sandboxes: %s", word, len(matches), nameMatches(matches)).
		WithHint("name one of them as profile/id")
}

// nameMatches names the first matches, each with its state.
func nameMatches(matches []sandbox.Sandbox) string {
	slices.SortFunc(matches, func(a, b sandbox.Sandbox) int { return cmp.Compare(a.Ref().String(), b.Ref().String()) })
	names := make([]string, len(matches))
	for i, s := range matches {
		names[i] = fmt.Sprintf("%s (%s)", s.Ref(), s.State)
	}
	return sandbox.FormatFirst(names, shownMatches)
}

// incompleteError is the error when a provider that could not be listed might have the
// sandbox.
func incompleteError(l Listing, word string) error {
	var silent []string
	for _, err := range l.Errors {
		var f *fault.Error
		if errors.As(err, &f) && !slices.Contains(silent, f.Provider) {
			silent = append(silent, f.Provider)
		}
	}
	err := fault.New(unavailableKind(l.Err()), "%q may be a sandbox of %s, which could not be listed: %w",
		word, strings.Join(silent, ", "), errors.New(joinErrorLines(l.Err())))
	hint := "write profile/" + word + " to search only that profile"
	if short := shortWord(word); short != "" {
		hint += "; " + short
	}
	return err.WithHint("%s", hint)
}

// shortWord is the hint for a word that is no beginning of an id, since it has too few characters; "" = it has enough.
func shortWord(word string) string {
	if utf8.RuneCountInString(word) >= sandbox.MinPrefix {
		return ""
	}
	return fmt.Sprintf("the beginning of an id needs %d characters or more", sandbox.MinPrefix)
}

func joinErrorLines(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
