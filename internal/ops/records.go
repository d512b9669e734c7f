package ops

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// memoryLimit bounds what a slow store may cost a verb that does without.
const memoryLimit = 5 * time.Second

// recordCreated records a new sandbox, so that `reconcile` knows it, unless its provider keeps
// records. The sandbox exists in any case, so a failing store is a warning.
func (e *Env) recordCreated(ctx context.Context, watch Reporter, f *fleet.Fleet, s sandbox.Sandbox) {
	if f.HasRecords(s.Provider) {
		return
	}
	e.writeStore(ctx, watch, true, func(ctx context.Context, st store.Store) error {
		return st.PutRecord(ctx, store.Record{
			Provider: s.Provider, ID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, Owner: e.Process.User(), Host: e.Process.Host,
			State: s.State, CreatedAt: s.CreatedAt, UpdatedAt: e.Now(),
		})
	})
}

// recordEnds brings the records of what was seen to end to their end. What has no record
// needs none.
func (e *Env) recordEnds(ctx context.Context, watch Reporter, f *fleet.Fleet, endings []sandbox.Ending) {
	var over []sandbox.Ending
	for _, e := range endings {
		if (e.Outcome == sandbox.OutcomeVerified || e.Outcome == sandbox.OutcomeAlreadyGone) && !f.HasRecords(e.Ref.Provider) {
			over = append(over, e)
		}
	}
	if len(over) == 0 {
		return
	}
	e.writeStore(ctx, watch, false, func(ctx context.Context, st store.Store) error {
		for _, ending := range over {
			err := st.EndRecord(ctx, ending.Ref, sandbox.StateTerminated, "ended by "+e.Process.User()+" on "+e.Process.Host, e.Now())
			if err != nil && fault.KindOf(err) != fault.KindNotFound {
				return err
			}
		}
		return nil
	})
}

// writeStore does something with the store; write makes one where there is none.
func (e *Env) writeStore(ctx context.Context, watch Reporter, write bool, do func(context.Context, store.Store) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), memoryLimit)
	defer stop()
	st, err := e.Store(write)
	if err == nil {
		err = do(ctx, st)
		_ = st.Close() // what had to be kept was kept by its own call
	}
	if err != nil {
		watch.Warn("sbx's own record could not be written: " + err.Error())
	}
}
