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
	"regexp"
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
	// maxOpenFile bounds what is read of it, in bytes.
	maxOpenFile = 256
	// lockWait is how long a process waits for others that append. Each of them needs some
	// milliseconds.
	lockWait = 10 * time.Second
)

// validID is what an id looks like; anything else could be a path.
var validID = regexp.MustCompile(`^i-[a-z0-9][a-z0-9-]{0,62}$`)

// Folder holds all incidents of a host.
type Folder struct {
	Dir string
	Now func() time.Time
}

func (f Folder) path(id string, more ...string) string {
	return filepath.Join(append([]string{f.Dir, id}, more...)...)
}

func (f Folder) disk(id string) journal.Dir { return journal.Dir(f.path(id)) }

// Current is the incident that is open; "" = none.
func (f Folder) Current() (string, error) {
	file, err := os.Open(filepath.Join(f.Dir, openFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", unreadableError("the open incident", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text := make([]byte, maxOpenFile)
	n, err := file.Read(text)
	id := strings.TrimSpace(string(text[:n]))
	if n > 0 && !validID.MatchString(id) {
		err = errors.New("it holds no id")
	}
	if err != nil {
		return "", unreadableError("the open incident", fmt.Errorf("%s: %w", file.Name(), err))
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
		if e.IsDir() && validID.MatchString(e.Name()) {
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
		return "", fault.New(fault.KindNotFound, "there is no incident %q", word).WithHint("`sbx incident ls` lists them")
	case 1:
		return found[0], nil
	}
	return "", fault.Usage("%q is the beginning of %d incidents: %s", word, len(found), strings.Join(found, ", ")).WithHint("write more of the id")
}

// Start begins an incident. While one is open it is fault.KindRefused.
func (f Folder) Start(ctx context.Context, id string, e Event) (*Incident, error) {
	if !validID.MatchString(id) || e.Start == nil {
		return nil, fault.Usage("%q is not the id of an incident", id)
	}
	held, err := f.lockAll(ctx, e.Actor)
	if err != nil {
		return nil, err
	}
	defer held()
	if open, err := f.findOpen(); err != nil || open != "" {
		if err == nil {
			err = f.openError(open)
		}
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

// findOpen is the incident that is open, by what its record says; "" = none. It repairs the file
// that names it, which a kill may have left behind or kept from being written.
func (f Folder) findOpen() (string, error) {
	named, namedErr := f.Current()
	ids, err := f.IDs()
	if err != nil {
		return "", err
	}
	for _, id := range slices.Backward(ids) {
		if i, err := f.Read(id); err != nil || i.State != Open {
			continue
		}
		if id != named {
			err = f.markOpen(id)
		}
		return id, err
	}
	if named != "" || namedErr != nil {
		if i, err := f.Read(named); named != "" && err == nil && i.State == Damaged {
			return "", fault.New(fault.KindRefused, "the incident %s is open and its record cannot be written: %s", named, i.Problem).
				WithHint("`sbx incident close` leaves it as it is; its report shows what can be read")
		}
		err = os.Remove(filepath.Join(f.Dir, openFile))
	}
	return "", err
}

func (f Folder) openError(id string) error {
	title := ""
	if i, err := f.Read(id); err == nil && i.Start.Title != "" {
		title = fmt.Sprintf(" (%s), started by %s at %s", i.Start.Title, i.StartedBy.Who, i.StartedAt.UTC().Format(time.RFC3339))
	}
	return fault.New(fault.KindRefused, "the incident %s is open%s", id, title).
		WithHint("add to it with `sbx incident note TEXT`, or end it with `sbx incident close`")
}

// Append adds an event to an incident. Several processes may do so at once: each holds a lock while
// it reads the journal and writes behind it.
func (f Folder) Append(ctx context.Context, id string, e Event) error {
	if _, err := os.Stat(f.path(id)); err != nil || !validID.MatchString(id) {
		return notFoundError(id)
	}
	held, err := lock.Take(ctx, f.path(id, lockFile), lock.Holder{Run: id, Who: e.Actor.Who, Host: e.Actor.Host, PID: e.Actor.PID, Since: f.Now()}, lockWait)
	if err != nil {
		return lockedError(id, err)
	}
	defer func() { _ = held.Release() }() // the process ends soon
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
	held, err := f.lockAll(ctx, e.Actor)
	if err != nil {
		return "", err
	}
	defer held()
	i, err := f.Read(id)
	if err != nil {
		return "", err
	}
	switch {
	case i.State == StateEnded:
		return "", fault.New(fault.KindRefused, "the incident %s was closed at %s", id, i.ClosedAt.UTC().Format(time.RFC3339)).
			WithHint("`sbx incident note --incident %s TEXT` still adds to it", id)
	case i.Problem != "":
		left = i.Problem
	default:
		err = f.Append(ctx, id, e)
	}
	if named, _ := f.Current(); err == nil && named == id {
		err = os.Remove(filepath.Join(f.Dir, openFile))
	}
	return left, err
}

// Read reads an incident, as far as the chain of its journal holds.
func (f Folder) Read(id string) (*Incident, error) {
	i, _, err := f.read(id)
	return i, err
}

func (f Folder) read(id string) (*Incident, journal.Log, error) {
	if !validID.MatchString(id) {
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
	if i.Truncated = log.Truncated; i.Problem != "" {
		i.State = Damaged
	}
	return i, log, nil
}

// eventOf reads an entry. Of one that is not an event of this version the error says so, and what could
// be read is beside it.
func eventOf(entry journal.Entry) (Event, error) {
	e := Event{}
	err := json.Unmarshal(entry.Data, &e)
	e.Kind = Kind(entry.Kind)
	if e.At.IsZero() {
		e.At = entry.At
	}
	if err != nil {
		err = fmt.Errorf("line %d (%s) cannot be read: %w", entry.Seq, entry.Kind, err)
	}
	if entry.Seq == 1 {
		err = cmp.Or(versionError(entry), err)
	}
	return e, err
}

// versionError is why a first entry does not begin a record of this version.
func versionError(entry journal.Entry) error {
	var head struct {
		Start *struct {
			Schema string `json:"schema"`
		} `json:"start"`
	}
	if err := json.Unmarshal(entry.Data, &head); err != nil || head.Start == nil {
		return errors.New("it does not begin with the start of an incident")
	}
	if head.Start.Schema != Schema {
		return fmt.Errorf("it is of version %q, and this sbx writes %q", head.Start.Schema, Schema)
	}
	return nil
}

func (f Folder) lockAll(ctx context.Context, a Actor) (func(), error) {
	held, err := lock.Take(ctx, filepath.Join(f.Dir, lockFile), lock.Holder{Run: "incident", Who: a.Who, Host: a.Host, PID: a.PID, Since: f.Now()}, lockWait)
	if err != nil {
		return nil, lockedError("", err)
	}
	return func() { _ = held.Release() }, nil
}

func notFoundError(id string) error {
	return fault.New(fault.KindNotFound, "there is no incident %q", id).WithHint("`sbx incident ls` lists them")
}

func unreadableError(what string, err error) error {
	return fault.New(fault.KindUnknown, "%s cannot be read: %w", what, err).
		WithHint("check that you may read `incidents` in the state directory; `sbx doctor` shows where it is")
}

// unwritableError keeps a refusal as it is; anything else is the disk.
func unwritableError(id string, err error) error {
	if kind := fault.KindOf(err); kind == fault.KindRefused || kind == fault.KindNotFound {
		return err
	}
	return fault.New(fault.KindUnknown, "incident %s: %w", id, err).
		WithHint("check that the disk of the state directory is neither full nor read-only")
}

func lockedError(id string, err error) error {
	if fault.KindOf(err) != fault.KindLocked {
		return fault.New(fault.KindOf(err), "incident %s: %w", id, err).WithHint("check that the state directory is writable and its disk not full")
	}
	return fault.New(fault.KindLocked, "the record of incident %s is locked by another process for more than %s", id, lockWait).
		WithHint("`sbx incident status` shows who wrote last")
}
