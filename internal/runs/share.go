package runs

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// keepActs is how long other hosts can read what a run did.
const keepActs = 400 * 24 * time.Hour

// withShared does something with the store that hosts share; without one nothing.
func (r Records) withShared(do func(store.Store) error) error {
	st, err := r.Shared()
	if err != nil || st == nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// SharedRuns are the runs of all hosts that share a store, newest first; limit 0 = all.
func (r Records) SharedRuns(ctx context.Context, limit int) (list []store.Run, err error) {
	err = r.withShared(func(st store.Store) error {
		list, err = st.Runs(ctx, limit)
		return err
	})
	return list, err
}

// SharedActs are the acts of all hosts that share a store, oldest first. One of a newer version
// that cannot be read is an error beside the others.
func (r Records) SharedActs(ctx context.Context, since time.Time) (acts []Act, err error) {
	err = r.withShared(func(st store.Store) error {
		stored, err := st.Acts(ctx, since)
		var unread error
		for _, s := range stored {
			var a Act
			if err := json.Unmarshal([]byte(s.Body), any(&a)); err != nil {
				unread = fault.New(fault.KindUnknown, "an act of the run %s in the shared store cannot be read: %w", s.Run, err).
					WithHint("it may have been written by another version of sbx")
				continue
			}
			acts = append(acts, a)
		}
		return errors.Join(err, unread)
	})
	return acts, err
}

// share reports the run to the other hosts, and what it did as far as disk has it. A failure loses
// that, never the journal of this host.
func (r *Run) share(ctx context.Context, run *store.Run, disk journal.Disk) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.records.ShareLimit)
	defer stop()
	err := r.records.withShared(func(st store.Store) error {
		var errRun error
		if run != nil {
			errRun = st.PutRun(ctx, *run)
		}
		if disk == nil {
			return errRun
		}
		acts, _, err := ReadActs(disk, r.ID)
		return errors.Join(errRun, err, st.AddActs(ctx, storedActs(acts), r.records.Now().Add(-keepActs)))
	})
	if err != nil {
		r.watch.Warn("other hosts will not see this run: " + err.Error())
	}
}

func storedActs(acts []Act) []store.Act {
	stored := make([]store.Act, 0, len(acts))
	for i, a := range acts {
		body, err := json.Marshal(any(a))
		if err != nil {
			continue // an act is texts and times
		}
		stored = append(stored, store.Act{Run: a.Run, Seq: i + 1, At: a.At, Body: string(body)})
	}
	return stored
}

// historyOfShared is what another host's run looks like from here: its sums, and no items.
func historyOfShared(run store.Run) History {
	h := History{RunID: run.ID, StartedAt: run.StartedAt, EndedAt: run.EndedAt, Sums: &fleet.Counts{Selected: run.Selected}}
	h.Begin.Verb, h.Begin.Layer, h.Begin.Host, h.Begin.Who = run.Verb, run.Layer, run.Host, run.Who
	for o, n := range run.Counts {
		h.Sums.Add(sandbox.Outcome(o), n)
	}
	if !run.EndedAt.IsZero() {
		h.Conclusion = &Conclusion{Counts: *h.Sums, ExitCode: run.ExitCode, Refused: !run.Acted, Succeeded: run.Profiles}
	}
	return h
}
