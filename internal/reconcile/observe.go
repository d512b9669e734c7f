package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// kindOf is under which word a suspect is kept among the sightings. An orphan that
// turns into a leak is seen anew.
func (c Cause) kind() string { return "reconcile " + string(c) }

// proved are the causes that one look does not prove.
func suspicions() []Cause { return []Cause{CauseOrphan, CauseLeak, CauseOverdue} }

// observe holds the suspects of a profile against earlier looks. Those that were
// not seen often enough are only reported. Without Rules.Observe it reads and
// writes nothing; with it, suspects of before that are none any more are
// forgotten, so that they begin anew.
//
// An error means that the sightings could not be read or written: then no suspect
// is proved.
func (e *Engine) observe(ctx context.Context, profile string, rows []Row) error {
	for _, cause := range suspicions() {
		earlier, err := e.Sightings.Sightings(ctx, cause.kind())
		if err == nil {
			err = e.see(ctx, cause, earlier, rows)
		}
		if err == nil && e.Rules.Observe {
			err = e.forget(ctx, profile, cause, earlier, rows)
		}
		if err != nil {
			unproved(rows, err)
			return fault.Placed(err, profile, "observations")
		}
	}
	return nil
}

// see counts the suspects of one cause.
func (e *Engine) see(ctx context.Context, cause Cause, earlier map[string]store.Sighting, rows []Row) error {
	for i, row := range rows {
		if row.Action != ActTerminate || row.Cause != cause {
			continue
		}
		key := e.sightingKey(row, earlier)
		seen, err := e.sight(ctx, row, earlier[key], key)
		if err != nil {
			return err
		}
		rows[i].Observations = seen.Count
		if seen.Count < e.Rules.Observations {
			rows[i] = rows[i].kept(ActReport, fmt.Sprintf("seen like this %d of %d times, which have to be %s apart",
				seen.Count, e.Rules.Observations, sandbox.FormatDuration(e.Rules.Grace)))
		}
	}
	return nil
}

// sightingKey names one run of one sandbox: its reference, and when it began. An id
// that is given again, or a sandbox that is started anew, has another key, whatever
// the clocks say. It is the key of before where that names the same run.
func (e *Engine) sightingKey(row Row, earlier map[string]store.Sighting) string {
	from, _ := born(row.Box, e.Now())
	key := row.Ref.String() + keySeparator + from.UTC().Format(time.RFC3339Nano)
	if _, seen := earlier[key]; seen || from.Nanosecond() != 0 {
		return key
	}
	for other := range earlier {
		ref, began, _ := strings.Cut(other, keySeparator)
		at, err := time.Parse(time.RFC3339Nano, began)
		if ref == row.Ref.String() && err == nil && at.Nanosecond() == 0 && from.Sub(at).Abs() <= roundedBy {
			return other
		}
	}
	return key
}

// roundedBy is how far two times of one start may lie apart that are told in whole
// seconds: one may have been computed from an age in minutes.
const roundedBy = time.Minute

// keySeparator stands between a reference and a time in a key of the sightings.
const keySeparator = " "

// refOfKey is the reference in a key of the sightings.
func refOfKey(key string) string {
	ref, _, _ := strings.Cut(key, keySeparator)
	return ref
}

// sight counts this look, where looks are counted. What was seen before the
// sandbox began was another of its id.
func (e *Engine) sight(ctx context.Context, row Row, earlier store.Sighting, key string) (store.Sighting, error) {
	now := e.Now()
	from, _ := born(row.Box, now)
	other := earlier.Count > 0 && (earlier.First.Before(from) || earlier.Last.After(now))
	if !e.Rules.Observe {
		if other {
			return store.Sighting{}, nil
		}
		return earlier, nil
	}
	if other {
		if err := e.Sightings.Forget(ctx, row.Cause.kind(), key); err != nil {
			return store.Sighting{}, err
		}
	}
	// The look was taken at some time between row.looked and now, and the one before
	// until it was counted: a process may have stood still in between. Grace lies
	// between the two for sure where this one began that long after the other counted.
	apart := e.Rules.Grace
	if !row.looked.IsZero() {
		apart += max(0, now.Sub(row.looked))
	}
	return e.Sightings.Sight(ctx, row.Cause.kind(), key, now, apart)
}

// forget drops what a profile's rows do not show any more. What could not be
// judged this time keeps its count.
func (e *Engine) forget(ctx context.Context, profile string, cause Cause, earlier map[string]store.Sighting, rows []Row) error {
	counted, unjudged := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		switch {
		case row.Cause == CauseUnproved:
			unjudged[row.Ref.String()] = true
		case row.Observations > 0 && row.Cause == cause:
			counted[e.sightingKey(row, earlier)] = true
		}
	}
	for key := range earlier {
		if of(key, profile) && !counted[key] && !unjudged[refOfKey(key)] {
			if err := e.Sightings.Forget(ctx, cause.kind(), key); err != nil {
				return err
			}
		}
	}
	return nil
}

// unproved keeps every suspect: what cannot be counted proves nothing.
func unproved(rows []Row, err error) {
	for i, row := range rows {
		if row.Action == ActTerminate {
			rows[i] = row.kept(ActReport, "earlier observations cannot be read: "+err.Error())
		}
	}
}
