package incident

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/journal"
)

// snapshotFolder is below that of an incident.
const snapshotFolder = "snapshots"

// The most that an incident keeps: one that somebody forgot to close does not fill the disk.
const (
	maxSnapshot      = 32 << 20 // bytes of one
	maxSnapshots     = 200
	maxSnapshotBytes = 128 << 20 // of all
	maxSeen          = 5000      // events, beyond which what verbs have only seen is left out
)

// fullError says that no more is kept.
func fullError(id, what string) error {
	return fault.New(fault.KindRefused, "the incident %s has %s, the most that is kept", id, what).WithHint("`sbx incident close` ends it, and `sbx incident start` begins another")
}

// hasRoom says that a snapshot of this size still fits.
func (i *Incident) hasRoom(size int) bool {
	all := i.Snapshots()
	for _, s := range all {
		size += s.Bytes
	}
	return len(all) < maxSnapshots && size <= maxSnapshotBytes
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// AddSnapshot stores bytes beside the journal, and an event that names them. The file is written
// first, so that no event names one that is missing.
func (f Folder) AddSnapshot(ctx context.Context, id, name string, content []byte, e Event) (Snapshot, error) {
	if !validName.MatchString(name) {
		return Snapshot{}, fault.Usage("%q is not the name of a snapshot", name)
	}
	if len(content) > maxSnapshot {
		return Snapshot{}, fault.New(fault.KindRefused, "the snapshot %s has %d bytes, and %d is the most", name, len(content), maxSnapshot)
	}
	var s Snapshot
	err := f.change(ctx, id, func(i *Incident, w *journal.Writer) error {
		if i.State != Open {
			return nil // it was closed meanwhile
		}
		if !i.hasRoom(len(content)) {
			return fullError(id, fmt.Sprintf("%d snapshots", len(i.Snapshots())))
		}
		s = newSnapshot(name, fmt.Sprintf("%04d-%s", len(i.Events)+1, name), content)
		if err := f.writeSnapshot(id, s, content); err != nil {
			return err
		}
		e.Kind, e.Snapshot = Snapshotted, &s
		return appendEvents(w, []Event{e})
	})
	return s, err
}

func newSnapshot(name, file string, content []byte) Snapshot {
	sum := sha256.Sum256(content)
	return Snapshot{Name: name, File: filepath.Join(snapshotFolder, file), Bytes: len(content), SHA256: hex.EncodeToString(sum[:])}
}

func (f Folder) writeSnapshot(id string, s Snapshot, content []byte) error {
	if err := os.MkdirAll(f.path(id, snapshotFolder), 0o700); err != nil {
		return err
	}
	return hostfile.Replace(f.path(id, s.File), content, 0o600)
}

// isInside says that the file is one below the folder of snapshots.
func (s Snapshot) isInside() bool {
	return filepath.Dir(s.File) == snapshotFolder && !strings.HasPrefix(filepath.Base(s.File), ".")
}

// ReadSnapshot reads a snapshot. One that was changed, or that is missing, is fault.KindFound.
func (f Folder) ReadSnapshot(ctx context.Context, id string, s Snapshot) ([]byte, error) {
	if !s.isInside() {
		return nil, fault.New(fault.KindFound, "the snapshot %q of incident %s is no file of it", s.File, id)
	}
	content, err := hostfile.ReadRegular(ctx, f.path(id, s.File), maxSnapshot)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fault.New(fault.KindFound, "the snapshot %s of incident %s is missing", s.File, id)
	case err != nil:
		return nil, unreadableError("a snapshot of incident "+id, err)
	}
	if newSnapshot(s.Name, filepath.Base(s.File), content).SHA256 != s.SHA256 {
		return nil, fault.New(fault.KindFound, "the snapshot %s of incident %s was changed after it was written", s.File, id)
	}
	return content, nil
}
