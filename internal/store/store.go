package store

import (
	"context"
	"time"

	"sbx/internal/sandbox"
)

// Store is everything that is kept. A verb that needs less asks for one of the
// parts.
//
// Every error is a fault with a hint and without a secret: KindUnavailable for a
// database that is down, full or does not answer, KindAuth for a refused login,
// KindUsage for a place that cannot be used, KindLocked for a lease or a file that
// somebody else holds, KindRefused for a schema of a newer sbx, KindUnknown for a
// broken file. An end of ctx has the kind of ctx. Times are kept in microseconds
// and returned in UTC; the zero time stays zero.
type Store interface {
	LeaseStore
	SightingStore
	RecordStore
	RunStore
	// Close gives back what the store holds open; its leases stay.
	Close() error
}

// LeaseStore gives exclusive rights for a time.
type LeaseStore interface {
	// Acquire takes the lease of that name for ttl. KindLocked, naming holder and
	// end, while it is held, also by the same holder.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error)
	// Renew makes the lease end ttl from now. KindLocked once it has expired,
	// even if nobody took it: others may have concluded that its holder is dead.
	Renew(ctx context.Context, lease Lease, ttl time.Duration) (Lease, error)
	// Release gives the lease back. KindLocked when it is somebody else's by now
	// or was given back before.
	Release(ctx context.Context, lease Lease) error
}

// SightingStore counts what was observed, so that one look is never proof.
type SightingStore interface {
	// Sight notes that something was seen at a time. It counts when that is at
	// least apart after the last that counted; the first always does.
	Sight(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (Sighting, error)
	// Forget drops what was seen under a key; nothing to drop is no error.
	Forget(ctx context.Context, kind, key string) error
	// Sightings gives all of a kind, by key.
	Sightings(ctx context.Context, kind string) (map[string]Sighting, error)
}

// RecordStore keeps which sandboxes sbx created.
type RecordStore interface {
	// PutRecord inserts the record or replaces all of it. A record without
	// provider or id is KindUsage.
	PutRecord(ctx context.Context, record Record) error
	// EndRecord notes an end: state and reason become those given, and EndedAt
	// keeps the first end that was noted. KindNotFound without a record.
	EndRecord(ctx context.Context, ref sandbox.Ref, state sandbox.State, reason string, at time.Time) error
	// Records gives all records of a profile, oldest first; "" = of all profiles.
	// The list is complete, or there is an error and no list.
	Records(ctx context.Context, provider string) ([]Record, error)
}

// RunStore keeps a summary of each bulk run.
type RunStore interface {
	// PutRun inserts the run or replaces all of it. A run without id is KindUsage.
	PutRun(ctx context.Context, run Run) error
	// Runs gives the runs that started last, newest first; limit 0 = all.
	Runs(ctx context.Context, limit int) ([]Run, error)
}
