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

// sightingKind is the kind under which the sightings of a suspect are stored. An orphan
// that becomes a leak starts anew.
func (c Cause) sightingKind() string { return "reconcile " + string(c) }

// applyObservations compares the suspects of a profile with earlier observations. Those
// that were not seen often enough are only reported. Without Rules.Observe it reads and
// writes nothing; with it, earlier suspects that are none any more are forgotten, so that
// they start anew.
//
// An error means that the sightings could not be read or written: then no suspect is
// proved.
func (e *Engine) applyObservations(ctx context.Context, profile string, rows []Row) error {
	for _, cause := range []Cause{CauseOrphan, CauseLeak, CauseOverdue} { // one observation does not prove them
		earlier, err := e.Sightings.Sightings(ctx, cause.sightingKind())
		if err == nil {
			err = e.countSuspects(ctx, cause, earlier, rows)
		}
		if err == nil && e.Rules.Observe {
			err = e.forgetSightings(ctx, profile, cause, earlier, rows)
		}
		if err != nil {
			markUnproved(rows, err)
			return fault.Placed(err, profile, "observations")
		}
	}
	return nil
}

// countSuspects counts the suspects of one cause.
func (e *Engine) countSuspects(ctx context.Context, cause Cause, earlier map[string]store.Sighting, rows []Row) error {
	for i, row := range rows {
		if row.Action != ActTerminate || row.Cause != cause {
			continue
		}
		key := e.sightingKey(row, earlier)
		seen, err := e.countSighting(ctx, row, earlier[key], key)
		if err != nil {
			return err
		}
		rows[i].Observations = seen.Count
		if seen.Count < e.Rules.Observations {
			rows[i] = rows[i].leftAlone(ActReport, fmt.Sprintf("seen like this %d of %d times, which have to be %s apart",
				seen.Count, e.Rules.Observations, sandbox.FormatDuration(e.Rules.Grace)))
		}
	}
	return nil
}

// sightingKey identifies one run of one sandbox by its reference and its start. A reused id
// or a restarted sandbox has another key, whatever the clocks show. An earlier key of the
// same run is used again.
func (e *Engine) sightingKey(row Row, earlier map[string]store.Sighting) string {
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

// keySeparator stands between the reference and the time in a key of the sightings.
const keySeparator = " "

// refOfKey is the reference in a key of the sightings.
func refOfKey(key string) string {
	ref, _, _ := strings.Cut(key, keySeparator)
	return ref
}

// countSighting counts this observation, where observations are counted. A sighting before
// the sandbox began belongs to another one with its id.
func (e *Engine) countSighting(ctx context.Context, row Row, earlier store.Sighting, key string) (store.Sighting, error) {
	now := e.Now()
	from, _ := startTime(row.Box, now)
	other := earlier.Count > 0 && (earlier.First.Before(from) || earlier.Last.After(now))
	if !e.Rules.Observe {
		if other {
			return store.Sighting{}, nil
		}
		return earlier, nil
	}
	if other {
		if err := e.Sightings.Forget(ctx, row.Cause.sightingKind(), key); err != nil {
			return store.Sighting{}, err
		}
	}
	// The sandbox was read at some time between row.readAt and now, since the process may
	// have been suspended. Adding that time guarantees that Grace lies between the two
	// reads.
	apart := e.Rules.Grace
	if !row.readAt.IsZero() {
		apart += max(0, now.Sub(row.readAt))
	}
	return e.Sightings.Sight(ctx, row.Cause.sightingKind(), key, now, apart)
}

// forgetSightings removes the sightings that a profile's rows show no more. Suspects that
// could not be judged this time keep their count.
func (e *Engine) forgetSightings(ctx context.Context, profile string, cause Cause, earlier map[string]store.Sighting, rows []Row) error {
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
		if strings.HasPrefix(key, profile+"/") && !counted[key] && !unjudged[refOfKey(key)] {
			if err := e.Sightings.Forget(ctx, cause.sightingKind(), key); err != nil {
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
