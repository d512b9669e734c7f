package ops

import (
	"context"
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// The kinds of sightings that cleanup keeps in the store.
const (
	sightFirst     = "first seen"        // of sandboxes without a known age
	sightCandidate = "cleanup candidate" // under --notify-before
)

// Sightings reads the sightings of a kind on first use. A failed read counts as never seen,
// which keeps a sandbox.
func (e *Env) Sightings(ctx context.Context, watch Reporter, kind string) func() map[string]store.Sighting {
	return sync.OnceValue(func() (seen map[string]store.Sighting) {
		e.writeStore(ctx, watch, false, func(ctx context.Context, st store.Store) (err error) {
			seen, err = st.Sightings(ctx, kind)
			return err
		})
		return seen
	})
}

// candidateKey distinguishes a sandbox from a later one with the same id.
func candidateKey(s sandbox.Sandbox) string {
	return s.Ref().String() + " " + s.CreatedAt.UTC().Format(time.RFC3339Nano)
}
