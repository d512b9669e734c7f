package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// Record is one row of a control plane, with what it allows.
type Record struct {
	providers.Record

	// KeepFor is how long after its start the sandbox may outlive its task, with KeepAlive;
	// 0 = not known.
	KeepFor time.Duration
}

// Source is the origin of the records of one profile.
type Source struct {
	Name string // "provider", "store", "tasks:dump.csv"
	// Read returns every record. A failed or partial reading contains an error.
	Read func(context.Context) iter.Seq2[Record, error]
	// AsOf is when the records were dumped; zero = they are read live.
	AsOf time.Time
	// Confirm reads every sandbox by its id, also where record and listing agree: for
	// records that may be the listing itself.
	Confirm bool
	// Tasks reports that the records are tasks of an application. A task at work without
	// its sandbox is for the application to repair.
	Tasks bool
	// Mark ends the record of an ended sandbox; nil = sbx may not write it.
	Mark func(ctx context.Context, ref sandbox.Ref, why string) error
	// Adopt records a sandbox; nil = sbx cannot add records here.
	Adopt func(ctx context.Context, s sandbox.Sandbox) error
	// Reread reports that a mark has to be proved by reading the records again, because the
	// source answers before it has done it, or without doing it.
	Reread bool
}

// readAll reads a source to its end; any error makes it useless.
func (s Source) readAll(ctx context.Context) ([]Record, error) {
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

// lastTime is the latest time in the record; zero = it has none.
func (r Record) lastTime() time.Time {
	last := r.CreatedAt
	for _, at := range []time.Time{r.UpdatedAt, r.EndedAt} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// FromProvider are the records of a profile's own control plane. They may be the very
// listing that is compared with them, so each sandbox is confirmed by its id.
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
		s.Mark = func(ctx context.Context, ref sandbox.Ref, _ string) error { return removeGhost(ctx, f, ref) }
	}
	return s
}

// removeGhost drops the record of a sandbox that its provider lists and does not find by its id. The request is that of
// an end, and the read by id may be wrong: what still reports figures is no ghost.
func removeGhost(ctx context.Context, f *fleet.Fleet, ref sandbox.Ref) error {
	if _, err := f.Usage(ctx, ref); err == nil {
		return fault.New(fault.KindUnavailable, "its provider does not find it, and reports its figures: its record stays").At(ref.Provider, "reconcile "+ref.ID)
	}
	return f.RemoveRecord(ctx, ref)
}

// Owner is the process that records sandboxes.
type Owner struct {
	Who  string
	Host string
	Now  func() time.Time
	// HostBound reports that the sandboxes of the profile are visible only on the machine
	// that made them: the records of another host cannot be compared with a listing here.
	HostBound bool
}

// FromStore are the records of the sandboxes that sbx created.
func FromStore(records store.RecordStore, profile string, by Owner) Source {
	return Source{
		Name: "store",
		Read: streamOf(func(ctx context.Context) ([]Record, error) {
			rows, err := records.Records(ctx, profile)
			rows = slices.DeleteFunc(rows, func(r store.Record) bool { return by.HostBound && r.Host != "" && r.Host != by.Host })
			return mapAll(rows, storedRecord), err
		}),
		Mark: func(ctx context.Context, ref sandbox.Ref, why string) error {
			return records.EndRecord(ctx, ref, sandbox.StateTerminated, why, by.Now())
		},
		Adopt: func(ctx context.Context, s sandbox.Sandbox) error {
			from, _ := startTime(s, by.Now())
			return records.PutRecord(ctx, store.Record{
				Provider: s.Provider, ID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, Owner: by.Who, Host: by.Host,
				State: s.State, CreatedAt: from, UpdatedAt: by.Now(), Reason: "adopted",
			})
		},
	}
}

// storedRecord converts a record of sbx. A stopped sandbox was stopped on purpose.
func storedRecord(r store.Record) Record {
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

// FromTasks are the tasks of another application. AsOf is when a dump was taken; zero =
// rows reads them live.
func FromTasks(name string, asOf time.Time, rows func(context.Context) ([]store.TaskRow, error)) Source {
	return Source{Name: name, AsOf: asOf, Tasks: true, Read: streamOf(func(ctx context.Context) ([]Record, error) {
		tasks, err := rows(ctx)
		return mapAll(tasks, Task), err
	})}
}

func streamOf(all func(context.Context) ([]Record, error)) func(context.Context) iter.Seq2[Record, error] {
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

func mapAll[A, B any](list []A, as func(A) B) []B {
	out := make([]B, len(list))
	for i, item := range list {
		out[i] = as(item)
	}
	return out
}

// Task converts a row by the application's own rules: a completed, failed, stopped or
// deleted task needs no sandbox, unless it is kept alive on purpose, which a stop by hand
// ends. Where these rules are silent, Live is unknown.
func Task(t store.TaskRow) Record {
	r := Record{Record: providers.Record{
		SandboxID: t.SandboxID, TaskID: t.ID, RawState: t.Status, KeepAlive: t.KeepAlive, Live: liveVerdict(t),
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, EndedAt: cmp.Or(t.DeletedAt, t.CompletedAt),
	}}
	if !t.DeletedAt.IsZero() {
		r.RawState += ", deleted"
	}
	if t.Status == statusStopped {
		r.KeepAlive = false
	}
	if r.KeepAlive {
		r.KeepFor = time.Duration(t.MaxDurationMinutes) * time.Minute
	}
	return r
}

// The statuses of the application.
const (
	statusPending    = "pending"
	statusProcessing = "processing"
	statusCompleted  = "completed"
	statusError      = "error"
	statusStopped    = "stopped"
)

func liveVerdict(t store.TaskRow) sandbox.Verdict {
	deleted := !t.DeletedAt.IsZero()
	switch t.Status {
	case statusCompleted, statusError, statusStopped:
		return sandbox.False
	case statusPending, statusProcessing:
		switch {
		case !deleted:
			return sandbox.True
		case !t.KeepAlive:
			return sandbox.False
		}
	}
	return sandbox.Unknown
}

// seenKind is the kind under which the observation counts of a suspect are stored. An orphan
// that becomes a leak starts anew.
func (c Cause) seenKind() string { return "reconcile " + string(c) }

// applyObservations compares the suspects of a profile with earlier observations. Those
// that were not seen often enough are only reported. Without Rules.Observe it reads and
// writes nothing; with it, earlier suspects that are none any more are forgotten, so that
// they start anew.
//
// An error means that the counts could not be read or written: then no suspect is
// proved.
func (e *Engine) applyObservations(ctx context.Context, profile string, rows []Row) error {
	for _, cause := range []Cause{CauseOrphan, CauseLeak, CauseOverdue} { // one observation does not prove them
		earlier, err := e.SeenCounts.SeenCounts(ctx, cause.seenKind())
		if err == nil {
			err = e.countSuspects(ctx, cause, earlier, rows)
		}
		if err == nil && e.Rules.Observe {
			err = e.forgetSeenCounts(ctx, profile, cause, earlier, rows)
		}
		if err != nil {
			markUnproved(rows, err)
			return fault.Placed(err, profile, "observations")
		}
	}
	return nil
}

func (e *Engine) countSuspects(ctx context.Context, cause Cause, earlier map[string]store.SeenCount, rows []Row) error {
	for i, row := range rows {
		if row.Action != ActTerminate || row.Cause != cause {
			continue
		}
		key := e.seenKey(row, earlier)
		seen, err := e.countSeen(ctx, row, earlier[key], key)
		if err != nil {
			return err
		}
		rows[i].Observations = seen.Count
		if seen.Count < e.Rules.Observations {
			rows[i] = rows[i].leftAlone(ActReport, fmt.Sprintf("seen like this %d of %d times, at least %s apart",
				seen.Count, e.Rules.Observations, sandbox.FormatDuration(e.Rules.Grace)))
		}
	}
	return nil
}

// seenKey identifies one run of one sandbox by its reference and its start. A reused id
// or a restarted sandbox has another key, whatever the clocks show. An earlier key of the
// same run is used again.
func (e *Engine) seenKey(row Row, earlier map[string]store.SeenCount) string {
	from, _ := startTime(row.Box, e.Now())
	key := row.Ref.String() + keySeparator + from.UTC().Format(time.RFC3339Nano)
	if _, seen := earlier[key]; seen || from.Nanosecond() != 0 {
		return key
	}
	for other := range earlier {
		ref, began, _ := strings.Cut(other, keySeparator)
		at, err := time.Parse(time.RFC3339Nano, began)
		if ref == row.Ref.String() && err == nil && at.Nanosecond() == 0 && from.Sub(at).Abs() <= startTolerance {
			return other
		}
	}
	return key
}

// startTolerance is the difference up to which two start times in whole seconds are equal:
// one may have been computed from an age in minutes.
const startTolerance = time.Minute

// keySeparator stands between the reference and the time in a key of the counts.
const keySeparator = " "

func refOfKey(key string) string {
	ref, _, _ := strings.Cut(key, keySeparator)
	return ref
}

// countSeen counts this observation, where observations are counted. One before
// the sandbox began belongs to another one with its id.
func (e *Engine) countSeen(ctx context.Context, row Row, earlier store.SeenCount, key string) (store.SeenCount, error) {
	now := e.Now()
	from, _ := startTime(row.Box, now)
	other := earlier.Count > 0 && (earlier.First.Before(from) || earlier.Last.After(now))
	if !e.Rules.Observe {
		if other {
			return store.SeenCount{}, nil
		}
		return earlier, nil
	}
	if other {
		if err := e.SeenCounts.Forget(ctx, row.Cause.seenKind(), key); err != nil {
			return store.SeenCount{}, err
		}
	}
	// The sandbox was read at some time between row.readAt and now, since the process may
	// have been suspended. Adding that time guarantees that Grace lies between the two
	// reads.
	apart := e.Rules.Grace
	if !row.readAt.IsZero() {
		apart += max(0, now.Sub(row.readAt))
	}
	return e.SeenCounts.CountSeen(ctx, row.Cause.seenKind(), key, now, apart)
}

// forgetSeenCounts removes the counts that a profile's rows show no more. Suspects that
// could not be judged this time keep their count.
func (e *Engine) forgetSeenCounts(ctx context.Context, profile string, cause Cause, earlier map[string]store.SeenCount, rows []Row) error {
	counted, unjudged := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		switch {
		case row.Cause == CauseUnproved:
			unjudged[row.Ref.String()] = true
		case row.Observations > 0 && row.Cause == cause:
			counted[e.seenKey(row, earlier)] = true
		}
	}
	for key := range earlier {
		if strings.HasPrefix(key, profile+"/") && !counted[key] && !unjudged[refOfKey(key)] {
			if err := e.SeenCounts.Forget(ctx, cause.seenKind(), key); err != nil {
				return err
			}
		}
	}
	return nil
}

// markUnproved leaves every suspect alone: what cannot be counted proves nothing.
func markUnproved(rows []Row, err error) {
	for i, row := range rows {
		if row.Action == ActTerminate {
			rows[i] = row.leftAlone(ActReport, "earlier observations cannot be read: "+err.Error())
		}
	}
}
