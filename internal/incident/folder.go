package incident

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/journal"
)

// validID says that a word looks like an id: anything else could be a path.
func validID(id string) bool {
	name, ok := strings.CutPrefix(id, Prefix)
	return ok && name != "" && len(name) < 64 && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// Folder holds the incidents that earlier versions recorded on a host.
type Folder string

func (f Folder) disk(id string) journal.Dir { return journal.Dir(filepath.Join(string(f), id)) }

// IDs are the ids of all incidents, oldest first.
func (f Folder) IDs() ([]string, error) {
	entries, err := os.ReadDir(string(f))
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
	found := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return word == "" || !strings.HasPrefix(id, word) && !strings.HasPrefix(strings.TrimPrefix(id, Prefix), word)
	})
	switch {
	case slices.Contains(ids, word):
		return word, nil
	case len(found) == 0:
		return "", notFoundError(word)
	case len(found) > 1:
		return "", fault.Usage("%q is the beginning of %d incidents: %s", word, len(found), strings.Join(found, ", ")).WithHint("write more of the id")
	}
	return found[0], nil
}

// Read reads an incident, as far as the chain of its journal holds.
func (f Folder) Read(id string) (*Incident, error) {
	if !validID(id) {
		return nil, notFoundError(id)
	}
	i := &Incident{ID: id}
	log, err := journal.Scan(f.disk(id), id, func(entry journal.Entry) {
		e, err := eventOf(entry)
		if err != nil && i.Problem == "" {
			i.Problem = err.Error()
		}
		i.replay(e)
	})
	switch {
	case fault.KindOf(err) == fault.KindNotFound:
		return nil, notFoundError(id)
	case err != nil:
		return nil, unreadableError("the record of incident "+id, err)
	case i.Problem == "" && log.Broken != "":
		i.Problem = "it was changed or damaged: " + log.Broken
	case i.Problem == "" && log.Count == 0:
		i.Problem = "it has no entry: the process that began it was killed"
	}
	return i, nil
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
		err = fmt.Errorf("it is of version %q, and this sbx knows %q", e.Start.Schema, Schema)
	case err != nil:
		err = fmt.Errorf("line %d (%s) cannot be read: %w", entry.Seq, entry.Kind, err)
	}
	return e, err
}

func notFoundError(id string) error {
	return fault.New(
		fault.KindNotFound, "no run of a runbook and no incident of before is called %q", id,
	).WithHint("`sbx runbook runs` lists the runs; a span of time needs no id: `sbx incident report --since 14:00 --until 15:00`")
}

func unreadableError(what string, err error) error {
	return fault.New(fault.KindUnknown, "%s cannot be read: %w", what, err).
		WithHint("check that you may read `incidents` in the state directory; `sbx doctor` shows where it is")
}
