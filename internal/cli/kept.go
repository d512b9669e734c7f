package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// openStore gives what survives the process. Where nothing is to be written, and
// nothing was written before or the state directory cannot be used, an empty one in
// memory does.
func (a *app) openStore(write bool) (store.Store, error) { //nolint:ireturn // on the disk or in memory
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	dir, unusable := c.State()
	switch {
	case c.StoreURL != "":
	case unusable != nil && write:
		return nil, unusable
	case unusable != nil:
		a.withoutState()
		return store.Memory(a.process.Now), nil //nolint:nilerr // it was said
	case !write:
		if _, err := os.Stat(filepath.Join(dir, store.FileName)); errors.Is(err, fs.ErrNotExist) {
			return store.Memory(a.process.Now), nil
		}
	}
	return store.New(store.Options{URL: c.StoreURL, StateDir: dir, Now: a.process.Now})
}

// withSharedStore does something with the store that hosts share; without one nothing.
func (a *app) withSharedStore(do func(store.Store) error) error {
	c, err := a.config()
	if err != nil || c.StoreURL == "" {
		return err
	}
	st, err := a.openStore(true)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

func (a *app) shareRun(ctx context.Context, run store.Run) error {
	return a.withSharedStore(func(st store.Store) error { return st.PutRun(ctx, run) })
}

func (a *app) sharedRuns(ctx context.Context, limit int) (runs []store.Run, err error) {
	err = a.withSharedStore(func(st store.Store) error {
		runs, err = st.Runs(ctx, limit)
		return err
	})
	return runs, err
}

// withoutState says, once, that nothing of earlier runs is known.
func (a *app) withoutState() {
	a.warnState.Do(func() {
		c, err := a.config()
		if err != nil {
			return
		}
		_, why := c.State()
		if p, err := a.printer(); err == nil && why != nil {
			p.Warn("what earlier runs remembered is not known: " + why.Error() + "; " + fault.HintOf(why))
		}
	})
}
