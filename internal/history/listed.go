package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

const (
	// listedSubject is the subject of the row that holds the failed sandboxes of the listings of an hour:
	// one row, since a row for each would cost more than the listing. No id has such a form.
	listedSubject = "/listed"
	maxListed     = 200 // in one row, the newest
)

func (r *Recorder) takeListed() map[string]map[string]Seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := r.listed
	r.listed = map[string]map[string]Seen{}
	return listed
}

// mergeListed is the row of this hour: with what earlier listings have put there, which a provider may
// have forgotten since.
func mergeListed(ctx context.Context, st store.SampleStore, profile string, now time.Time, failed map[string]Seen) (store.Sample, error) {
	row := store.Sample{Profile: profile, Subject: listedSubject, At: now.Truncate(seenEvery)}
	rows, err := st.Samples(ctx, store.SampleQuery{Profile: profile, Subject: listedSubject, Since: row.At})
	if err != nil {
		return row, err
	}
	var all []Seen
	for _, earlier := range rows {
		var kept []Seen
		if unpack(earlier.Body, &kept) == nil {
			all = append(all, kept...)
		}
	}
	all = slices.DeleteFunc(all, func(s Seen) bool { _, again := failed[s.Sandbox.ID]; return again })
	for _, s := range failed {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Seen) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Sandbox.ID, b.Sandbox.ID))
	})
	row.Body, err = pack(all[:min(len(all), maxListed)])
	return row, err
}

// lastListed finds a sandbox in the newest row of failed ones that has it.
func lastListed(ctx context.Context, st store.SampleStore, ref sandbox.Ref) (Seen, bool, error) {
	rows, err := st.Samples(ctx, store.SampleQuery{Profile: ref.Provider, Subject: listedSubject})
	if err != nil {
		return Seen{}, false, err
	}
	for _, row := range slices.Backward(rows) {
		var listed []Seen
		if unpack(row.Body, &listed) != nil {
			continue
		}
		if i := slices.IndexFunc(listed, func(s Seen) bool { return s.Sandbox.ID == ref.ID }); i >= 0 {
			return listed[i], true, nil
		}
	}
	return Seen{}, false, nil
}
