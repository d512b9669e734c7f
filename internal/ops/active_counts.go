package ops

import (
	"context"
	"slices"
	"time"

	"sbx/internal/history"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/triage"
)

// ActiveCounts are the stored counts of the active sandboxes of a profile since a time, oldest first.
func ActiveCounts(ctx context.Context, st store.SampleStore, profile string, since time.Time) ([]triage.ActiveCount, error) {
	looks, err := history.Looks(ctx, st, profile, since)
	var counts []triage.ActiveCount
	for _, l := range looks {
		if l.Counts != nil {
			counts = append(counts, triage.ActiveCount{At: l.At, Active: l.Counts[sandbox.StateRunning]})
		}
	}
	return counts, err
}

// ReadOverFor reads for how long the count of a profile has been over its default limits. A recent
// count that is within all of them answers without reading the samples of a week.
func ReadOverFor(
	ctx context.Context, st store.SampleStore, profile string, recent []triage.ActiveCount, t triage.Thresholds, now time.Time,
) (triage.OverFor, error) {
	lowest := int64(min(t.ActiveNormal, t.ActiveMax, t.EscalateActive))
	if t.Given.Active || slices.ContainsFunc(recent, func(c triage.ActiveCount) bool { return c.Active < lowest }) {
		return triage.OverFor{}, nil
	}
	counts, err := ActiveCounts(ctx, st, profile, now.Add(-history.Rules().Keep))
	if err != nil {
		return triage.OverFor{}, err
	}
	return triage.NewOverFor(counts, t, now), nil
}
