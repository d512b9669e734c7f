package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/snapshot"
)

// WriteSnapshot writes the file of a snapshot whole or not at all.
func WriteSnapshot(path string, s *snapshot.Snapshot) error {
	text, err := snapshot.Encode(s)
	if err != nil {
		return err
	}
	return writeSnapshotText(path, text)
}

func writeSnapshotText(path string, text []byte) error {
	if err := hostfile.CheckOutput(path); err != nil {
		return err
	}
	if err := hostfile.Replace(path, text, 0o600); err != nil {
		return fault.New(fault.KindUnknown, "the snapshot cannot be written: %w", err).WithHint("check that the folder exists, that you may write to it, and that the disk is not full")
	}
	return nil
}

// RecordedLook is a snapshot in a file.
type RecordedLook struct {
	Name     string // for people: that of its file
	File     string
	Snapshot *snapshot.Snapshot // nil where Err says why
	Err      error

	indented bool
}

// Write writes the snapshot back, in the form that the file has.
func (r *RecordedLook) Write() error {
	text, err := snapshot.Encode(r.Snapshot)
	if err != nil {
		return err
	}
	if r.indented {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", " "); err != nil {
			return err
		}
		text = pretty.Bytes()
	}
	return writeSnapshotText(r.File, text)
}

// RecordedLooks reads the snapshots in folders. A file that is no snapshot has an error.
func RecordedLooks(ctx context.Context, env *Env, folders []string) ([]RecordedLook, error) {
	if _, err := env.Config(); err != nil { // or the defaults would judge
		return nil, err
	}
	var all []RecordedLook
	for _, folder := range folders {
		looks, err := readFolder(ctx, env.Path(folder))
		if err != nil {
			return nil, err
		}
		all = append(all, looks...)
	}
	return all, context.Cause(ctx)
}

// readFolder reads all snapshots of a folder.
func readFolder(ctx context.Context, folder string) ([]RecordedLook, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fault.Usage("--dir: %w", err).WithHint("name a folder with files that `diagnose --snapshot` has written")
	}
	var all []RecordedLook
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		all = append(all, readLook(ctx, filepath.Join(folder, e.Name())))
	}
	if len(all) == 0 {
		return nil, fault.Usage("--dir: %s has no .json files", folder).WithHint("`diagnose --snapshot FILE` writes one")
	}
	return all, nil
}

func readLook(ctx context.Context, file string) RecordedLook {
	look := RecordedLook{Name: strings.TrimSuffix(filepath.Base(file), ".json"), File: file}
	text, err := hostfile.ReadRegular(ctx, file, snapshot.MaxFile)
	if err == nil {
		look.indented = bytes.HasPrefix(text, []byte("{\n"))
		look.Snapshot, err = snapshot.Decode(text)
	}
	if err != nil {
		look.Err = fault.New(fault.KindPartial, "%s: %w", file, err).WithHint("`diagnose --snapshot FILE` writes a snapshot that this version reads")
	}
	return look
}
