package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

func testDocs(t *testing.T, s subject) {
	t.Helper()
	st := s.Store
	none, err := st.Doc(t.Context(), "pool", "a")
	require.NoError(t, err)
	assert.Equal(t, store.Doc{Kind: "pool", Key: "a", ReadAt: none.ReadAt}, none)
	assert.False(t, none.ReadAt.IsZero())
	put := func(d store.Doc) store.Doc {
		t.Helper()
		kept, err := st.SwapDoc(t.Context(), d)
		require.NoError(t, err)
		found, err := st.Doc(t.Context(), d.Kind, d.Key)
		require.NoError(t, err)
		found.ReadAt = kept.ReadAt
		assert.Equal(t, kept, found)
		return kept
	}
	none.Body = []byte(`{"n":1}`)
	first := put(none)
	assert.Equal(t, none.Body, first.Body)
	none.Body[2] = 'm'
	found, err := st.Doc(t.Context(), "pool", "a")
	require.NoError(t, err)
	assert.Equal(t, first.Body, found.Body, "what was handed in is kept as it was")
	s.Pass(t, time.Millisecond)
	first.Body = nil
	second := put(first)
	assert.True(t, second.UpdatedAt.After(first.UpdatedAt))
	assert.Greater(t, second.Version, first.Version)
	assert.Nil(t, second.Body)
	put(store.Doc{Kind: "pool", Key: "B"})
	put(store.Doc{Kind: "breaker", Key: "a"})
	list, err := st.Docs(t.Context(), "pool")
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, []string{"B", "a"}, []string{list[0].Key, list[1].Key}, "by the bytes of the key")
	second.ReadAt = list[1].ReadAt
	assert.Equal(t, second, list[1])
	list, err = st.Docs(t.Context(), "nothing")
	require.NoError(t, err)
	assert.NotNil(t, list)
	assert.Empty(t, list)

	testBadDocs(t, st, first)
	testDropAndRemake(t, st, first, second)
}

func testBadDocs(t *testing.T, st store.Store, stale store.Doc) {
	t.Helper()
	for _, d := range []store.Doc{stale, {Kind: "pool", Key: "a"}, {Kind: "pool", Key: "none", Version: 1}, {Kind: "pool", Key: "a", Version: 99}} {
		_, err := st.SwapDoc(t.Context(), d)
		requireRefused(t, err, fault.KindLocked, store.ErrSwapped)
		requireRefused(t, st.DropDoc(t.Context(), d), fault.KindLocked, store.ErrSwapped)
	}
	for _, d := range []store.Doc{{Kind: "pool"}, {Key: "a"}, {Kind: "pool", Key: strings.Repeat("x", 1025)}} {
		_, err := st.SwapDoc(t.Context(), d)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		_, err = st.Doc(t.Context(), d.Kind, d.Key)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.Equal(t, fault.KindUsage, fault.KindOf(st.DropDoc(t.Context(), d)))
	}
}

// testDropAndRemake drops and makes a document repeatedly: no version repeats, so that a
// stale version changes nothing.
func testDropAndRemake(t *testing.T, st store.Store, first, second store.Doc) {
	t.Helper()
	last := second
	before := []store.Doc{first, second}
	for range 3 {
		require.NoError(t, st.DropDoc(t.Context(), last))
		gone, err := st.Doc(t.Context(), "pool", "a")
		require.NoError(t, err)
		assert.Zero(t, gone.Version)
		list, err := st.Docs(t.Context(), "pool")
		require.NoError(t, err)
		assert.Len(t, list, 1)
		requireRefused(t, st.DropDoc(t.Context(), last), fault.KindLocked, store.ErrSwapped)
		made, err := st.SwapDoc(t.Context(), gone)
		require.NoError(t, err)
		assert.Greater(t, made.Version, last.Version)
		for _, old := range before {
			_, err = st.SwapDoc(t.Context(), old)
			requireRefused(t, err, fault.KindLocked, store.ErrSwapped)
			requireRefused(t, st.DropDoc(t.Context(), old), fault.KindLocked, store.ErrSwapped)
		}
		last, err = st.SwapDoc(t.Context(), made)
		require.NoError(t, err)
		before = append(before, made, last)
	}
}

// testDocRaces makes, changes and drops one document concurrently: each version occurs
// once.
func testDocRaces(t *testing.T, s subject) {
	t.Helper()
	const runners, rounds = 8, 12
	st := s.Store
	var mu sync.Mutex
	had := map[int64]string{}
	var wg sync.WaitGroup
	for runner := range runners {
		wg.Go(func() {
			for round := range rounds {
				kept, err := changeOrDrop(t.Context(), st, round%3 == 2, fmt.Appendf(nil, `"%d %d"`, runner, round))
				if err != nil && !errors.Is(err, store.ErrSwapped) {
					t.Error(err)
				}
				if kept.Version == 0 {
					continue
				}
				mu.Lock()
				assert.Empty(t, had[kept.Version], "version %d comes twice", kept.Version)
				had[kept.Version] = string(kept.Body)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.NotEmpty(t, had)
	last, err := st.Doc(t.Context(), "pool", "a")
	require.NoError(t, err)
	if last.Version > 0 {
		assert.Equal(t, had[last.Version], string(last.Body))
	}
}

// changeOrDrop drops the document, or makes or changes it and returns what is stored.
func changeOrDrop(ctx context.Context, st store.Store, drop bool, body []byte) (store.Doc, error) {
	found, err := st.Doc(ctx, "pool", "a")
	if err != nil {
		return store.Doc{}, err
	}
	if drop && found.Version > 0 {
		return store.Doc{}, st.DropDoc(ctx, found)
	}
	found.Body = body
	return st.SwapDoc(ctx, found)
}
