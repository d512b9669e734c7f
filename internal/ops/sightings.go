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
	sightFirst     = "first seen"        // of what tells no age
	sightCandidate = "cleanup candidate" // under --notify-before
)

// Sightings reads the sightings of a kind when they are first asked for. What cannot
// be read was never seen, which keeps a sandbox.
func (e *Env) Sightings(ctx context.Context, watch Reporter, kind string) func() map[string]store.Sighting {
	return sync.OnceValue(func() (seen map[string]store.Sighting) {
		e.writeStore(ctx, watch, false, func(ctx context.Context, st store.Store) (err error) {
			seen, err = st.Sightings(ctx, kind)
			return err
		})
		return seen
	})
}

// candidateKey tells a sandbox from another one that gets its id.
func candidateKey(s sandbox.Sandbox) string {
	return s.Ref().String() + " " + s.CreatedAt.UTC().Format(time.RFC3339Nano)
}
