package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/commands"
	"sbx/internal/fault"
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

// journal begins the journal of a run: one JSON object a line in the state
// directory, each on the disk before what it announces is done.
func (a *app) journal(run string) (commands.Journal, error) { //nolint:ireturn // as the verbs know it
	c, err := a.config()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.StateDir, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unwritable(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, run+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, unwritable(err)
	}
	return &lines{file: file, dir: dir, run: run, app: a}, nil
}

func unwritable(err error) error {
	return fault.New(fault.KindUnavailable, "the journal cannot be written, so nothing was done: %w", err).
		WithHint("is the disk full? `sbx config path` says where state is kept")
}

// lines is a journal on the disk.
type lines struct {
	file     *os.File
	dir, run string
	app      *app
	named    bool // the folder knows the file, also after a crash
}

// Append returns when the line would survive a crash.
func (l *lines) Append(kind string, data any) error {
	line, err := json.Marshal(map[string]any{"at": l.app.process.Now().UTC(), "run": l.run, "kind": kind, "data": data})
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return unwritable(err)
	}
	if err := l.file.Sync(); err != nil {
		return unwritable(err)
	}
	return l.name()
}

func (l *lines) name() error {
	if l.named {
		return nil
	}
	dir, err := os.Open(l.dir)
	if err != nil {
		return unwritable(err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return unwritable(err)
	}
	l.named = true
	return nil
}

// Close closes the file; every line is on the disk already.
func (l *lines) Close() error { return l.file.Close() }
