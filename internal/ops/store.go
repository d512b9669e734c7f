package ops

import (
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// StoreTimeout bounds what a slow store may cost a verb that does without.
const StoreTimeout = 5 * time.Second

// RecordCreated records a new sandbox, so that `reconcile` knows it, unless its provider keeps
// records. The sandbox exists in any case, so a failing store is a warning.
func (e *Env) RecordCreated(ctx context.Context, watch Reporter, f *fleet.Fleet, s sandbox.Sandbox) {
	if f.HasRecords(s.Provider) {
		return
	}
	e.WriteStore(ctx, watch, true, func(ctx context.Context, st store.Store) error {
		return st.PutRecord(ctx, store.Record{
			Provider: s.Provider, ID: s.ID, TaskID: s.TaskID, AgentType: s.AgentType, Owner: e.Process.User(), Host: e.Process.Host,
			State: s.State, CreatedAt: s.CreatedAt, UpdatedAt: e.Now(),
		})
	})
}

// RecordEnded begins the reason of a record whose sandbox was ended. Other reasons are of records that
// were brought to the end of a sandbox that had ended already.
const RecordEnded = "ended by "

// WriteStore does something with the store; write makes one where there is none.
func (e *Env) WriteStore(ctx context.Context, watch Reporter, write bool, do func(context.Context, store.Store) error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), e.Process.TimeScale.Limit(StoreTimeout))
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

// RequireState is why what is on record cannot be read: nobody may control the state directory but
// this user. A verb about records refuses then; a listing of nothing would look as if there were
// none. A store that hosts share needs no state directory.
func (e *Env) RequireState() error {
	c, err := e.Config()
	if err != nil || c.StoreURL != "" {
		return err
	}
	if _, err = c.State(); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	return nil // where there is no place for state, there is none
}

// SightFirst is the kind of the observation counts that cleanup keeps in the store, of sandboxes without a
// known age.
const SightFirst = "first seen"

// SeenCounts reads the observation counts of a kind on first use. A failed read counts as never seen,
// which keeps a sandbox.
func (e *Env) SeenCounts(ctx context.Context, watch Reporter, kind string) func() map[string]store.SeenCount {
	return sync.OnceValue(func() (seen map[string]store.SeenCount) {
		e.WriteStore(ctx, watch, false, func(ctx context.Context, st store.Store) (err error) {
			seen, err = st.SeenCounts(ctx, kind)
			return err
		})
		return seen
	})
}
