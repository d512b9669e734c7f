package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/store"
)

// store gives what survives the process. Where nothing is to be written and
// nothing was written before, an empty one in memory does.
func (a *app) store(write bool) (store.Store, error) { //nolint:ireturn // on the disk or in memory
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, store.FileName)); !write && c.StoreURL == "" && errors.Is(err, fs.ErrNotExist) {
		return store.Memory(a.process.Now), nil
	}
	return store.New(store.Options{URL: c.StoreURL, StateDir: c.StateDir, Now: a.process.Now})
}

// shared does something with the store that hosts share; without one nothing.
func (a *app) shared(do func(store.Store) error) error {
	c, err := a.config()
	if err != nil || c.StoreURL == "" {
		return err
	}
	st, err := a.store(true)
	if err != nil {
		return err
	}
	return errors.Join(do(st), st.Close())
}

func (a *app) shareRun(ctx context.Context, run store.Run) error {
	return a.shared(func(st store.Store) error { return st.PutRun(ctx, run) })
}

func (a *app) sharedRuns(ctx context.Context, limit int) (runs []store.Run, err error) {
	err = a.shared(func(st store.Store) error {
		runs, err = st.Runs(ctx, limit)
		return err
	})
	return runs, err
}
