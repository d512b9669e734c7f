package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
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

// keepSnapshot has a snapshot stored in the incident that is open when the verb ends. It is made only
// then. One without the conclusions of runbooks is stored, too, and the error says why they are missing.
func keepSnapshot(env *Env, record func() (*snapshot.Snapshot, error)) {
	env.AddSnapshot(snapshotName, func() ([]byte, error) {
		s, err := record()
		if s == nil {
			return nil, err
		}
		content, encodeErr := snapshot.Encode(s)
		return content, errors.Join(err, encodeErr)
	})
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
	Name     string // for people: that of its file, or incident/file
	File     string
	Incident string             // the incident whose evidence it is; "" = none
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

// snapshotsName is the folder of the snapshots of an incident.
const snapshotsName = "snapshots"

// RecordedLooks reads the snapshots of recorded incidents, and those in folders. A file of a folder
// that is no snapshot has an error; of an incident it is left out, since others may be stored there.
func RecordedLooks(ctx context.Context, env *Env, folders []string) ([]RecordedLook, error) {
	if _, err := env.Config(); err != nil { // or the defaults would judge
		return nil, err
	}
	all, err := env.recordedIncidents(ctx)
	if err != nil && len(folders) == 0 { // folders need no state directory
		return nil, err
	}
	for _, folder := range folders {
		looks, err := readFolder(ctx, env.Path(folder))
		if err != nil {
			return nil, err
		}
		all = append(all, looks...)
	}
	return all, context.Cause(ctx)
}

// recordedIncidents reads the snapshots of the incidents of this state directory.
func (e *Env) recordedIncidents(ctx context.Context) ([]RecordedLook, error) {
	folder, err := e.incidentFolder()
	if err != nil {
		return nil, err
	}
	incidents, err := os.ReadDir(folder.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.KindUnknown, "the incidents cannot be read: %w", err)
	}
	var all []RecordedLook
	for _, i := range incidents {
		kept := filepath.Join(folder.Dir, i.Name(), snapshotsName)
		files, err := os.ReadDir(kept)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && i.IsDir() {
			return nil, fault.New(fault.KindUnknown, "the snapshots of %s cannot be read: %w", i.Name(), err)
		}
		for _, file := range files {
			look, is := readLook(ctx, filepath.Join(kept, file.Name()), i.Name())
			if is {
				all = append(all, look)
			}
		}
	}
	return all, nil
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
		look, _ := readLook(ctx, filepath.Join(folder, e.Name()), "")
		all = append(all, look)
	}
	if len(all) == 0 {
		return nil, fault.Usage("--dir: %s has no .json files", folder).WithHint("`diagnose --snapshot FILE` writes one")
	}
	return all, nil
}

// readLook reads one file; false = it is no snapshot of any version.
func readLook(ctx context.Context, file, incident string) (RecordedLook, bool) {
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	if incident != "" {
		name = incident + "/" + name
	}
	look := RecordedLook{Name: name, File: file, Incident: incident}
	text, err := hostfile.ReadRegular(ctx, file, snapshot.MaxFile)
	if err == nil {
		look.indented = bytes.HasPrefix(text, []byte("{\n"))
		look.Snapshot, err = snapshot.Decode(text)
	}
	if err != nil {
		look.Err = fault.New(fault.KindPartial, "%s: %w", file, err).WithHint("`diagnose --snapshot FILE` writes a snapshot that this version reads")
	}
	return look, err == nil || snapshot.Is(text)
}
