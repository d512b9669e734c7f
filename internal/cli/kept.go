package cli

import (
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
