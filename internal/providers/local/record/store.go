package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/internal/hostfile"
	"sbx/internal/providers/local/plain"
	"sbx/internal/sandbox"
)

// Store is the folder with one folder per sandbox.
type Store struct {
	Root string // <state>/local
}

// The names inside a sandbox's folder.
const (
	recordFile = "record.json"
	lockFile   = "lock"
	execFile   = "exec.lock" // held by the clients of running commands
	proofFile  = "emptied"
	stopFile   = "stop.json"
	labelsFile = "labels.json" // the labels, once they were edited; the record has those of the create
	editLock   = "labels.lock" // held for an edit of them, or of the end; by the supervisor once the end has come
	endFile    = "end.json"    // a later end than that of the record
	socketFile = "ctl.sock"
	workDir    = "home"
	tempDir    = "tmp"
	logFile    = "supervisor.log"
)

// MaxBytes limits the size of a readable record, and so the memory for a malformed one.
const MaxBytes = 1 << 20

// ErrGarbage is wrapped for every unreadable record.
var ErrGarbage = errors.New("not a readable record")

// Owner identifies this store in all processes that use it: the names of cgroups contain it, so
// that two stores on one machine never take each other's groups for leftovers.
func (s Store) Owner() string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Root)) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// Dir is the folder of one sandbox.
func (s Store) Dir(id string) string { return filepath.Join(s.Root, id) }

// Work is the sandbox's private working directory.
func (s Store) Work(id string) string { return filepath.Join(s.Root, id, workDir) }

// Temp is the sandbox's private TMPDIR.
func (s Store) Temp(id string) string { return filepath.Join(s.Root, id, tempDir) }

// Socket is the command socket of the sandbox's stub.
func (s Store) Socket(id string) string { return filepath.Join(s.Root, id, socketFile) }

// Proof is the file in which a stub without a namespace records that it outlived its
// supervisor and ended everything below it.
func (s Store) Proof(id string) string { return filepath.Join(s.Root, id, proofFile) }

// Proved reports whether that file exists.
func (s Store) Proved(id string) bool {
	info, err := os.Lstat(s.Proof(id))
	return err == nil && info.Mode().IsRegular()
}

// LastExec is when a command of a client last began or ended inside; zero = never.
func (s Store) LastExec(id string) time.Time {
	info, err := os.Lstat(filepath.Join(s.Dir(id), execFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime().UTC()
}

// NoteExec records that a command begins or ends.
func (s Store) NoteExec(id string, at time.Time) error {
	return os.Chtimes(filepath.Join(s.Dir(id), execFile), time.Time{}, at)
}

// SupervisorLog is the supervisor's own log.
func (s Store) SupervisorLog(id string) string { return filepath.Join(s.Root, id, logFile) }

// Prepare makes the folder of a new sandbox and takes its lock. The returned file holds the
// lock for as long as any process has it open.
func (s Store) Prepare(id string) (*os.File, error) {
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.Dir(id), 0o700); err != nil {
		return nil, err
	}
	lock, err := s.lockNew(id)
	if err == nil {
		err = errors.Join(os.Mkdir(s.Work(id), 0o700), os.Mkdir(s.Temp(id), 0o700))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir(id)))
	}
	return lock, nil
}

// IDs lists the sandbox folders, sorted by name. A missing root has no sandboxes; an
// unreadable one is an error.
func (s Store) IDs() ([]string, error) {
	root, err := os.Open(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := root.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, ".") })
	slices.Sort(names)
	return names, nil
}

// Read reads one record: fs.ErrNotExist when there is none, ErrGarbage when it is unreadable.
func (s Store) Read(id string) (Record, error) {
	var r Record
	path := filepath.Join(s.Dir(id), recordFile)
	raw, err := plain.Read(path, MaxBytes)
	if err != nil {
		return r, asGarbage(err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("%w: %s: %w", ErrGarbage, path, err)
	}
	if r.ID != id || r.Schema < 1 {
		return r, fmt.Errorf("%w: %s: it names sandbox %q, schema %d", ErrGarbage, path, r.ID, r.Schema)
	}
	r.Labels = s.editedLabels(r)
	if moved := s.MovedEnd(id); r.EndMoves && !r.State.Ended() && moved.After(r.ExpiresAt) {
		r.ExpiresAt = moved
	}
	return r, nil
}

// editedLabels are the labels of a record after the last edit. A file that cannot be read gives
// sandbox.LabelUnreadable beside those of the record: one that is lost may protect.
func (s Store) editedLabels(r Record) map[string]string {
	raw, err := plain.Read(filepath.Join(s.Dir(r.ID), labelsFile), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Labels
	}
	var labels map[string]string
	if err == nil {
		err = json.Unmarshal(raw, &labels)
	}
	if err != nil {
		labels = maps.Clone(r.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[sandbox.LabelUnreadable] = err.Error()
	}
	return labels
}

// MoveEnd stores a later end, which the supervisor reads when the earlier one has come. The caller holds the lock of
// TryLockEdit, and has read under it that the sandbox has not ended.
func (s Store) MoveEnd(id string, until time.Time) error {
	return hostfile.Replace(filepath.Join(s.Dir(id), endFile), []byte(until.UTC().Format(time.RFC3339Nano)), 0o600)
}

// MovedEnd is the end that MoveEnd has stored; zero = none, or the file cannot be read.
func (s Store) MovedEnd(id string) time.Time {
	raw, err := plain.Read(filepath.Join(s.Dir(id), endFile), MaxBytes)
	if err != nil {
		return time.Time{}
	}
	until, _ := time.Parse(time.RFC3339Nano, string(raw)) // zero for what is no time
	return until
}

// WriteLabels replaces the labels atomically. The caller holds the lock of TryLockEdit.
func (s Store) WriteLabels(id string, labels map[string]string) error {
	raw, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	return hostfile.Replace(filepath.Join(s.Dir(id), labelsFile), raw, 0o600)
}

// asGarbage marks the errors of a file that cannot be a record.
func asGarbage(err error) error {
	if errors.Is(err, plain.ErrNotPlain) || errors.Is(err, plain.ErrTooLong) {
		return fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	return err
}

// Write replaces the record atomically: a reader sees the old or the new one.
func (s Store) Write(r Record) error {
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return hostfile.Replace(filepath.Join(s.Dir(r.ID), recordFile), append(raw, '\n'), 0o600)
}

// AskStop stores a stop request. The first request stays and is returned to later callers.
func (s Store) AskStop(id string, stop Stop) (Stop, error) {
	raw, err := json.Marshal(stop)
	if err != nil {
		return stop, err
	}
	path := filepath.Join(s.Dir(id), stopFile)
	if err := createOnce(path, raw); IsDiskFull(err) {
		return stop, s.spareStop(id, raw)
	} else if err != nil {
		return stop, err
	}
	first, err := s.Stop(id)
	if err != nil || first == nil {
		return stop, err
	}
	return *first, nil
}

// createOnce makes a file unless it exists.
func createOnce(path string, raw []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".stop.*")
	if err != nil {
		return err
	}
	_, err = temp.Write(raw)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path) // unlike a rename, a link does not replace
	}
	return errors.Join(ignoreError(err, fs.ErrExist), os.Remove(temp.Name()))
}

func ignoreError(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return err
}

// Stop reads the stop request; nil when there is none.
func (s Store) Stop(id string) (*Stop, error) {
	raw, err := plain.Read(filepath.Join(s.Dir(id), stopFile), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s.readSpareStop(id), nil
	}
	if err != nil {
		return nil, asGarbage(err)
	}
	var stop Stop
	if err := json.Unmarshal(raw, &stop); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrGarbage, stopFile, err)
	}
	return &stop, nil
}

// Remove deletes a sandbox's folder and everything in it, and then its tie to a process.
func (s Store) Remove(id string) error {
	if id == "" || id != filepath.Base(id) || id == "." || id == ".." {
		return fmt.Errorf("%w: %q is not a sandbox folder", fs.ErrInvalid, id)
	}
	var err error
	for range removeTries {
		if err = os.RemoveAll(s.Dir(id)); !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	return s.untie(id)
}

// removeTries is how often a folder is removed into which another process writes a file at the same time.
const removeTries = 10

// Finish marks a sandbox as complete by removing its lock. It is called by the holder of the
// lock, after the last record is written.
func (s Store) Finish(id string) error {
	return ignoreError(os.Remove(filepath.Join(s.Dir(id), lockFile)), fs.ErrNotExist)
}

// Unfinished reports whether a sandbox is not finished, without reading its record.
func (s Store) Unfinished(id string) bool {
	_, unfinished := s.Due(id)
	return unfinished
}

// Ended is a finished sandbox with the time of its last record.
type Ended struct {
	ID string
	At time.Time
}

// EndedAt returns when a finished sandbox ended, without reading its record; false when it is
// not finished or has no record.
func (s Store) EndedAt(id string) (Ended, bool) {
	if s.Unfinished(id) {
		return Ended{}, false
	}
	info, err := os.Lstat(filepath.Join(s.Dir(id), recordFile))
	if err != nil {
		return Ended{}, false
	}
	return Ended{ID: id, At: info.ModTime()}, true
}

// Ended sandboxes stay for 24 hours, and at most 200 of them.
const (
	KeepEnded    = 24 * time.Hour
	KeepEndedMax = 200
)

// Expired selects those that no longer stay.
func Expired(ended []Ended, now time.Time) []Ended {
	sorted := slices.SortedFunc(slices.Values(ended), func(a, b Ended) int { return b.At.Compare(a.At) })
	keep := 0
	for keep < len(sorted) && keep < KeepEndedMax && now.Sub(sorted[keep].At) <= KeepEnded {
		keep++
	}
	return sorted[keep:]
}

// On a full disk no file can be made, and a requested end would look like a lost supervisor.
// The lock file has a block from the start, of which the holder's signature fills the
// beginning; the stop request is written after it.
const (
	spareOffset = 1 << 10
	spareBytes  = 1 << 10
)

// IsDiskFull reports whether a write failed for lack of space.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// spareStop writes the request into the lock file and keeps its modification time (SetDue).
func (s Store) spareStop(id string, raw []byte) error {
	due, unfinished := s.Due(id)
	if !unfinished || len(raw) > spareBytes {
		return syscall.ENOSPC
	}
	file, err := plain.Open(filepath.Join(s.Dir(id), lockFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(raw, spareOffset)
	return errors.Join(err, file.Close(), s.SetDue(id, due))
}

// readSpareStop reads such a request; nil when there is none.
func (s Store) readSpareStop(id string) *Stop {
	raw, err := plain.Read(filepath.Join(s.Dir(id), lockFile), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) || len(raw) <= spareOffset {
		return nil
	}
	var stop Stop
	if json.Unmarshal(bytes.TrimRight(raw[spareOffset:], "\x00"), &stop) != nil {
		return nil
	}
	return &stop
}

// SetDue stores a sandbox's expiry as the modification time of its lock file. It saves a sweep
// of many sandboxes the reading of records, which stay authoritative. It is called by the
// holder of the lock.
func (s Store) SetDue(id string, at time.Time) error {
	return os.Chtimes(filepath.Join(s.Dir(id), lockFile), time.Time{}, at)
}

// Due returns a time before which a sandbox has certainly not expired; false for a finished
// one. Without SetDue it is the time at which the lock was signed: never too late.
func (s Store) Due(id string) (time.Time, bool) {
	info, err := os.Lstat(filepath.Join(s.Dir(id), lockFile))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
