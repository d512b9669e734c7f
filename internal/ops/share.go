package ops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

const (
	shareLimit = 5 * time.Second      // what a slow store may cost a run
	keepActs   = 400 * 24 * time.Hour // how long other hosts can read what a run did
)

// withShared does something with the store that hosts share; without one nothing.
func (e *Env) withShared(do func(store.Store) error) error {
	st, err := e.Shared()
	if err != nil || st == nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

// sharedRuns are the runs of all hosts that share a store, newest first; limit 0 = all.
func (e *Env) sharedRuns(ctx context.Context, limit int) (runs []store.Run, err error) {
	err = e.withShared(func(st store.Store) error {
		runs, err = st.Runs(ctx, limit)
		return err
	})
	return runs, err
}

// sharedActs are the acts of all hosts that share a store, oldest first. One of a newer version
// that cannot be read is an error beside the others.
func (e *Env) sharedActs(ctx context.Context, since time.Time) (acts []cleanup.Act, err error) {
	err = e.withShared(func(st store.Store) error {
		stored, err := st.Acts(ctx, since)
		var unread error
		for _, s := range stored {
			var a cleanup.Act
			if err := json.Unmarshal([]byte(s.Body), &a); err != nil {
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

// share reports a run to the other hosts, and what it did as far as disk has it. A failure loses
// that, never the journal of this host.
func (e *Env) share(ctx context.Context, watch Reporter, run *store.Run, disk journal.Disk, id string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), e.Process.Stretch.Limit(shareLimit))
	defer stop()
	err := e.withShared(func(st store.Store) error {
		var errRun error
		if run != nil {
			errRun = st.PutRun(ctx, *run)
		}
		if disk == nil {
			return errRun
		}
		acts, _, err := cleanup.ReadActs(disk, id)
		return errors.Join(errRun, err, st.AddActs(ctx, storedActs(acts), e.Now().Add(-keepActs)))
	})
	if err != nil {
		watch.Warn("other hosts will not see this run: " + err.Error())
	}
}

func storedActs(acts []cleanup.Act) []store.Act {
	stored := make([]store.Act, 0, len(acts))
	for i, a := range acts {
		body, err := json.Marshal(a)
		if err != nil {
			continue // an act is texts and times
		}
		stored = append(stored, store.Act{Run: a.Run, Seq: i + 1, At: a.At, Body: string(body)})
	}
	return stored
}

// sharedRun is the summary of a run for other hosts; without an end it goes on.
func (e *Env) sharedRun(id string, begin cleanup.Begin, began time.Time, end *cleanup.End) *store.Run {
	run := store.Run{
		ID: id, Verb: begin.Verb, Layer: begin.Proven(), Host: begin.Host, Who: begin.Who, StartedAt: began,
		Selected: len(begin.Plan.Items), Acted: true,
	}
	if end == nil {
		return &run
	}
	run.EndedAt, run.ExitCode, run.Profiles = e.Now(), end.ExitCode, end.Succeeded
	run.Acted = !end.Refused
	run.Counts = map[string]int{}
	for _, o := range sandbox.Outcomes() {
		run.Counts[string(o)] = end.Counts.Of(o)
	}
	return &run
}

// historyOfShared is what another host's run looks like from here: its sums, and no
// items.
func historyOfShared(run store.Run) cleanup.History {
	h := cleanup.History{RunID: run.ID, StartedAt: run.StartedAt, EndedAt: run.EndedAt, Sums: &fleet.Counts{Selected: run.Selected}}
	h.Begin.Verb, h.Begin.Layer, h.Begin.Host, h.Begin.Who = run.Verb, run.Layer, run.Host, run.Who
	for o, n := range run.Counts {
		h.Sums.Add(sandbox.Outcome(o), n)
	}
	if !run.EndedAt.IsZero() {
		h.End = &cleanup.End{Counts: *h.Sums, ExitCode: run.ExitCode, Refused: !run.Acted, Succeeded: run.Profiles}
	}
	return h
}
