package reconcile

import (
	"context"
	"iter"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Record is one row of a control plane, and what it is meant to allow.
type Record struct {
	providers.Record

	// KeepFor is for how long, from its start, the sandbox may live on although
	// its task is over; only with KeepAlive, and 0 = it does not say.
	KeepFor time.Duration
}

// Source is where the records of one profile come from.
type Source struct {
	Name string // "provider", "store", "tasks:dump.csv"
	// Read gives every record. A failed or partial reading is an error in it.
	Read func(context.Context) iter.Seq2[Record, error]
	// AsOf is when the records were taken down; zero = they are read as they are.
	AsOf time.Time
	// Confirm reads every sandbox by its id, also where record and listing agree:
	// for records that may be the listing itself.
	Confirm bool
	// Tasks says that the records are tasks of an application. Where one is at
	// work without its sandbox the application has to be told, not the record.
	Tasks bool
	// Mark brings the record of a sandbox that has ended to its end; nil = nobody
	// here may write it.
	Mark func(ctx context.Context, ref sandbox.Ref, why string) error
	// Adopt puts a sandbox on record; nil = these records take none from sbx.
	Adopt func(ctx context.Context, s sandbox.Sandbox) error
	// Reread says that a mark is proved by reading the records once more: the
	// source answers before, or without, having done it.
	Reread bool
}

// collect reads a source to its end; an error anywhere makes all of it useless.
func (s Source) collect(ctx context.Context) ([]Record, error) {
	var all []Record
	for r, err := range s.Read(ctx) {
		if err != nil {
			return nil, err
		}
		if r.SandboxID != "" {
			all = append(all, r)
		}
	}
	return all, ctx.Err()
}

// last is the latest moment of which the record speaks; zero = it has no times.
func (r Record) last() time.Time {
	last := r.CreatedAt
	for _, at := range []time.Time{r.UpdatedAt, r.EndedAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}
