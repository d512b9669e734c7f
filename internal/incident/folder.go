package incident

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/journal"
	"sbx/internal/lock"
)

const (
	// openFile names the incident that is open. It exists only while one is.
	openFile = "open"
	lockFile = "lock"
	// lockWait is how long a process waits for others that append. Each of them needs some
	// milliseconds.
	lockWait = 10 * time.Second
)

// validID says that a word looks like an id: anything else could be a path.
func validID(id string) bool {
	name, ok := strings.CutPrefix(id, "i-")
	return ok && name != "" && len(name) < 64 && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Folder holds all incidents of a host.
type Folder struct {
	Dir string
	Now func() time.Time
}

func (f Folder) disk(id string) journal.Dir { return journal.Dir(filepath.Join(f.Dir, id)) }

// Current is the incident that is open; "" = none.
func (f Folder) Current() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.Dir, openFile))
	id := strings.TrimSpace(string(text))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err == nil && !validID(id):
		err = errors.New("the file " + openFile + " holds no id")
	}
	if err != nil {
		return "", unreadableError("the open incident", err)
	}
	return id, nil
}

// IDs are those of all incidents, oldest first.
func (f Folder) IDs() ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadableError("the incidents", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && validID(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Find is the id that a word means: an id, or a beginning of one alone.
func (f Folder) Find(word string) (string, error) {
	ids, err := f.IDs()
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range ids {
		if id == word {
			return id, nil
		}
		if word != "" && (strings.HasPrefix(id, word) || strings.HasPrefix(strings.TrimPrefix(id, Prefix), word)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", notFoundError(word)
	case 1:
		return found[0], nil
	}
	return "", fault.Usage("%q is the beginning of %d incidents: %s", word, len(found), strings.Join(found, ", ")).WithHint("write more of the id")
}

// Start begins an incident. While one is open it is fault.KindRefused.
func (f Folder) Start(ctx context.Context, id string, e Event) (*Incident, error) {
	if !validID(id) || e.Start == nil {
		return nil, fault.Usage("%q is not the id of an incident", id)
	}
	held, err := f.lock(ctx, e.Actor)
	if err != nil {
		return nil, err
	}
	defer held()
	if err := f.checkNoneOpen(); err != nil {
		return nil, err
	}
	e.Start.Schema = Schema
	w, err := journal.Create(f.disk(id), id, f.Now)
	if err == nil {
		err = errors.Join(w.Append(string(Started), e), w.Close())
	}
	if err == nil {
		err = f.markOpen(id)
	}
	if err != nil {
		return nil, unwritableError(id, err)
	}
	return f.Read(id)
}

func (f Folder) markOpen(id string) error {
	return hostfile.Replace(filepath.Join(f.Dir, openFile), []byte(id+"\n"), 0o600)
}

// checkNoneOpen refuses where an incident is open by what its record says. It repairs the file that names
// it, which a kill may have left behind or kept from being written.
func (f Folder) checkNoneOpen() error {
	named, namedErr := f.Current()
	ids, err := f.IDs()
	if err != nil {
		return err
	}
	for _, id := range slices.Backward(ids) {
		i, err := f.Read(id)
		switch {
		case err != nil || i.State == StateEnded:
		case i.State == Open:
			if id != named {
				err = f.markOpen(id)
			}
			refused := fault.New(fault.KindRefused, "the incident %s is open (%s), started by %s at %s", id, i.Start.Title, i.StartedBy.Who, i.StartedAt.UTC().Format(time.RFC3339)).
				WithHint("add to it with `sbx incident note TEXT`, or end it with `sbx incident close`")
			return cmp.Or(err, error(refused))
		case id == named:
			return fault.New(fault.KindRefused, "the incident %s is open and its record cannot be written: %s", named, i.Problem).
				WithHint("`sbx incident close` leaves it as it is; its report shows what can be read")
		}
	}
	if named != "" || namedErr != nil {
		return os.Remove(filepath.Join(f.Dir, openFile))
	}
	return nil
}

// Append adds an event to an incident. Several processes may do so at once: each holds a lock while
// it reads the journal and writes behind it.
func (f Folder) Append(ctx context.Context, id string, e Event) error {
	held, err := f.lock(ctx, e.Actor)
	if err != nil {
		return err
	}
	defer held()
	return f.add(id, e)
}

func (f Folder) add(id string, e Event) error {
	i, log, err := f.read(id)
	if err != nil {
		return err
	}
	if i.Problem != "" {
		return fault.New(fault.KindRefused, "the record of incident %s cannot be written: %s", id, i.Problem).
			WithHint("`sbx incident report %s` shows what can be read; `sbx incident close` leaves it as it is", id)
	}
	w, err := journal.Extend(f.disk(id), log, f.Now)
	if err == nil {
		err = errors.Join(w.Append(string(e.Kind), e), w.Close())
	}
	if err != nil {
		return unwritableError(id, err)
	}
	return nil
}

// Close ends an incident. One whose record is damaged is left as it is, and kept from being open;
// then left says why.
func (f Folder) Close(ctx context.Context, id string, e Event) (left string, err error) {
	held, err := f.lock(ctx, e.Actor)
	if err != nil {
		return "", err
	}
	defer held()
	i, err := f.Read(id)
	if err != nil {
		return "", err
	}
	if i.State == StateEnded {
		return "", fault.New(fault.KindRefused, "the incident %s was closed at %s", id, i.ClosedAt.UTC().Format(time.RFC3339)).
			WithHint("`sbx incident note --incident %s TEXT` still adds to it", id)
	}
	if i.Problem == "" {
		err = f.add(id, e)
	}
	if named, _ := f.Current(); err == nil && named == id {
		err = os.Remove(filepath.Join(f.Dir, openFile))
	}
	return i.Problem, err
}

// Read reads an incident, as far as the chain of its journal holds.
func (f Folder) Read(id string) (*Incident, error) {
	i, _, err := f.read(id)
	return i, err
}

func (f Folder) read(id string) (*Incident, journal.Log, error) {
	if !validID(id) {
		return nil, journal.Log{}, notFoundError(id)
	}
	i := &Incident{ID: id, State: Damaged}
	log, err := journal.Scan(f.disk(id), id, func(entry journal.Entry) {
		e, err := eventOf(entry)
		if err != nil && i.Problem == "" {
			i.Problem = err.Error()
		}
		i.replay(e)
	})
	switch {
	case fault.KindOf(err) == fault.KindNotFound:
		return nil, log, notFoundError(id)
	case err != nil:
		return nil, log, unreadableError("the record of incident "+id, err)
	case i.Problem == "" && log.Broken != "":
		i.Problem = "it was changed or damaged: " + log.Broken
	case i.Problem == "" && log.Count == 0:
		i.Problem = "it has no entry: the process that began it was killed"
	}
	if i.Problem != "" {
		i.State = Damaged
	}
	return i, log, nil
}

// eventOf reads an entry. Of one that is not an event of this version the error says so, and what could
// be read is beside it.
func eventOf(entry journal.Entry) (Event, error) {
	e := Event{}
	err := json.Unmarshal(entry.Data, &e)
	e.Kind, e.At = Kind(entry.Kind), cmp.Or(e.At, entry.At)
	switch {
	case entry.Seq == 1 && e.Start == nil:
		err = errors.New("it does not begin with the start of an incident")
	case entry.Seq == 1 && e.Start.Schema != Schema:
		err = fmt.Errorf("it is of version %q, and this sbx writes %q", e.Start.Schema, Schema)
	case err != nil:
		err = fmt.Errorf("line %d (%s) cannot be read: %w", entry.Seq, entry.Kind, err)
	}
	return e, err
}

func (f Folder) lock(ctx context.Context, a Actor) (release func(), err error) {
	held, err := lock.Take(ctx, filepath.Join(f.Dir, lockFile), lock.Holder{Run: "incident", Who: a.Who, Host: a.Host, PID: a.PID, Since: f.Now()}, lockWait)
	switch {
	case fault.KindOf(err) == fault.KindLocked:
		return nil, fault.New(fault.KindLocked, "the incidents are locked by another process for more than %s", lockWait).
			WithHint("`sbx incident status` shows who wrote last")
	case err != nil:
		return nil, fault.New(fault.KindOf(err), "the incidents: %w", err).WithHint(hintDisk)
	}
	return func() { _ = held.Release() }, nil // the process ends soon
}

func notFoundError(id string) error {
	return fault.New(fault.KindNotFound, "there is no incident %q", id).WithHint("`sbx incident ls` lists them")
}

func unreadableError(what string, err error) error {
	return fault.New(fault.KindUnknown, "%s cannot be read: %w", what, err).
		WithHint("check that you may read `incidents` in the state directory; `sbx doctor` shows where it is")
}

const hintDisk = "check that the disk of the state directory is neither full nor read-only"

func unwritableError(id string, err error) error {
	return fault.New(fault.KindUnknown, "incident %s: %w", id, err).WithHint(hintDisk)
}
