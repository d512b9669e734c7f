package reconcile

import (
	"context"
	"iter"
	"slices"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// FromProvider are the records of a profile's own control plane. They may be the
// very list that is compared with them, so each sandbox is confirmed by its id.
func FromProvider(f *fleet.Fleet, profile string) Source {
	s := Source{Name: "provider", Confirm: true, Reread: true, Read: func(ctx context.Context) iter.Seq2[Record, error] {
		return func(yield func(Record, error) bool) {
			for r, err := range f.Records(ctx, profile) {
				if !yield(Record{Record: r}, err) {
					return
				}
			}
		}
	}}
	if f.RemovesRecords(profile) {
		s.Mark = func(ctx context.Context, ref sandbox.Ref, _ string) error { return f.RemoveRecord(ctx, ref) }
	}
	return s
}

// Owner is who puts sandboxes on record.
type Owner struct {
	Who  string
	Host string
	Now  func() time.Time
	// HostBound says that the sandboxes of the profile live on the machine that made them:
	// the records of another host are about sandboxes that no listing here can show.
	HostBound bool
}

// sees says that the sandbox of a record could be in a listing of this host.
func (o Owner) sees(r store.Record) bool { return !o.HostBound || r.Host == "" || r.Host == o.Host }

// FromStore are the records of what sbx created.
func FromStore(records store.RecordStore, profile string, by Owner) Source {
	return Source{
		Name: "store",
		Read: read(func(ctx context.Context) ([]Record, error) {
			rows, err := records.Records(ctx, profile)
			rows = slices.DeleteFunc(rows, func(r store.Record) bool { return !by.sees(r) })
			return each(rows, stored), err
		}),
		Mark: func(ctx context.Context, ref sandbox.Ref, why string) error {
			return records.EndRecord(ctx, ref, sandbox.StateTerminated, why, by.Now())
		},
		Adopt: func(ctx context.Context, s sandbox.Sandbox) error {
			from, _ := born(s, by.Now())
			return records.PutRecord(ctx, store.Record{
				Provider: s.Provider, ID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, Owner: by.Who, Host: by.Host,
				State: s.State, CreatedAt: from, UpdatedAt: by.Now(), Reason: "adopted",
			})
		},
	}
}

// stored reads a record of sbx. One that was stopped was meant to be.
func stored(r store.Record) Record {
	record := Record{}
	record.SandboxID, record.TaskID, record.AgentType, record.RawState = r.ID, r.TaskID, r.AgentType, string(r.State)
	record.CreatedAt, record.UpdatedAt, record.EndedAt = r.CreatedAt, r.UpdatedAt, r.EndedAt
	switch {
	case !r.EndedAt.IsZero() || r.State.Ended() || r.State == sandbox.StateStopped:
		record.Live = sandbox.False
	case r.State == sandbox.StateUnknown || r.State == "":
		record.Live = sandbox.Unknown
	default:
		record.Live = sandbox.True
	}
	return record
}

// FromTasks are the tasks of another application. AsOf is when a dump was taken;
// zero = rows reads them as they are.
func FromTasks(name string, asOf time.Time, rows func(context.Context) ([]store.TaskRow, error)) Source {
	return Source{Name: name, AsOf: asOf, Tasks: true, Read: read(func(ctx context.Context) ([]Record, error) {
		tasks, err := rows(ctx)
		return each(tasks, Task), err
	})}
}

// read gives what comes as one list as a stream.
func read(all func(context.Context) ([]Record, error)) func(context.Context) iter.Seq2[Record, error] {
	return func(ctx context.Context) iter.Seq2[Record, error] {
		return func(yield func(Record, error) bool) {
			records, err := all(ctx)
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

func each[A, B any](list []A, as func(A) B) []B {
	out := make([]B, len(list))
	for i, item := range list {
		out[i] = as(item)
	}
	return out
}
