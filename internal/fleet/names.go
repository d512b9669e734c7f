package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// NameCache stores the last complete listing of a profile, so that completion need not wait for a
// new one, and that the next listing shows which rows are missing: id, name and state of each sandbox.
// The methods may be called concurrently. Those that write ignore their errors; Read returns nothing
// on an error.
type NameCache interface {
	// Caches reports whether the names of a profile are cached.
	Caches(profile string) bool
	Read(profile string) []sandbox.Sandbox
	Write(profile string, listed []sandbox.Sandbox)
	// Drop forgets sandboxes that have ended.
	Drop(profile string, ids []string)
	// AddUnlisted adds sandboxes that the listing did not have, and that have not ended as far as is known.
	AddUnlisted(profile string, missing []sandbox.Sandbox)
}

// maxCachedNames bounds what is kept of one profile.
const maxCachedNames = 1000

// keepNames collects what a NameCache keeps of one listing.
type keepNames struct {
	cache NameCache // nil = nothing is kept
	names []sandbox.Sandbox
}

func (k *keepNames) add(s sandbox.Sandbox) {
	if k.cache != nil && len(k.names) < maxCachedNames {
		k.names = append(k.names, sandbox.Sandbox{Provider: s.Provider, ID: s.ID, Name: s.Name, State: s.State})
	}
}

func (k *keepNames) write(profile string) {
	if k.cache != nil {
		k.cache.Write(profile, k.names)
	}
}

// ListNames lists every sandbox, with Provider, ID, Name and State set. A profile whose names
// are cached has until the limit to answer: one that is later, or fails, has its last listing.
func (f *Fleet) ListNames(ctx context.Context, limit time.Duration) []sandbox.Sandbox {
	var cached, local []*member
	for _, m := range f.members {
		if f.o.Names != nil && f.o.Names.Caches(m.Provider.Name()) {
			cached = append(cached, m)
		} else {
			local = append(local, m)
		}
	}
	var late Listing
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		late = f.withMembers(cached).Collect(ctx, providers.Query{})
	})
	list := f.withMembers(local).Collect(ctx, providers.Query{}).Items
	wg.Wait()
	return append(list, f.addCachedNames(late)...)
}

// addCachedNames completes an incomplete listing from the cache.
func (f *Fleet) addCachedNames(l Listing) []sandbox.Sandbox {
	known, failed := map[sandbox.Ref]bool{}, map[string]bool{}
	for _, s := range l.Items {
		known[s.Ref()] = true
	}
	for _, err := range l.Errors {
		if e, ok := errors.AsType[*fault.Error](err); ok {
			failed[e.Provider] = true
		}
	}
	for _, profile := range slices.Sorted(maps.Keys(failed)) {
		for _, s := range f.o.Names.Read(profile) {
			if !known[s.Ref()] {
				l.Items = append(l.Items, s)
			}
		}
	}
	return l.Items
}

// dropEnded makes the cache forget what was seen to have ended.
func (f *Fleet) dropEnded(profile string, endings []sandbox.Ending) {
	var ids []string
	for _, e := range endings {
		if e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone {
			ids = append(ids, e.Ref.ID)
		}
	}
	if f.o.Names != nil && len(ids) > 0 {
		f.o.Names.Drop(profile, ids)
	}
}
