package incident

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/journal"
	"sbx/internal/lock"
)

// Redact rewrites the journal and the snapshots of an incident, open or closed. Replace returns a text
// without secrets, and how many it has replaced. The entry that says so, e, is added.
//
// Snapshots are written under new names first, then one rename replaces the journal that names them:
// a process that is killed leaves the old record or the new one. What the old one named is removed
// last, and again by the next redaction.
func (f Folder) Redact(ctx context.Context, id string, replace func(string) (string, int), e Event) (Redaction, error) {
	if _, err := os.Stat(f.path(id)); err != nil || !validID.MatchString(id) {
		return Redaction{}, notFoundError(id)
	}
	held, err := lock.Take(ctx, f.path(id, lockFile), lock.Holder{Run: id, Who: e.Actor.Who, Host: e.Actor.Host, PID: e.Actor.PID, Since: f.Now()}, lockWait)
	if err != nil {
		return Redaction{}, lockedError(id, err)
	}
	defer func() { _ = held.Release() }() // the process ends soon
	r := &redaction{folder: f, id: id, replace: replace, kept: map[string]bool{}}
	if e.Redaction != nil {
		r.found = *e.Redaction
	}
	if err := r.rewrite(ctx, e); err != nil {
		return r.found, unwritableError(id, err)
	}
	return r.found, r.removeOthers()
}

type redaction struct {
	folder  Folder
	id      string
	replace func(string) (string, int)
	found   Redaction
	entries []journal.Entry
	kept    map[string]bool // files that the new record names
}

func (r *redaction) rewrite(ctx context.Context, e Event) error {
	i, _, err := r.folder.read(r.id)
	if err != nil {
		return err
	}
	if i.Problem != "" {
		return fault.New(fault.KindRefused, "the record of incident %s cannot be rewritten: %s", r.id, i.Problem).
			WithHint("remove what must not stay by hand, in `incidents/%s` of the state directory", r.id)
	}
	log, err := journal.Read(r.folder.disk(r.id), r.id)
	if err != nil {
		return err
	}
	for _, entry := range log.Entries {
		if err := r.rewriteEntry(ctx, entry); err != nil {
			return err
		}
	}
	if r.found.Places == 0 {
		return nil // nothing to say, and the chain stays
	}
	e.Kind, e.Redaction = Redacted, &r.found
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r.entries = append(r.entries, journal.Entry{At: e.At, Kind: string(Redacted), Data: data})
	text, err := journal.Rechain(r.id, r.entries)
	if err != nil {
		return err
	}
	return hostfile.Replace(r.folder.path(r.id, r.id+".jsonl"), text, 0o600)
}

func (r *redaction) rewriteEntry(ctx context.Context, entry journal.Entry) error {
	data, n := ReplaceInJSON(entry.Data, r.replace)
	if n > 0 {
		r.found.Events++
		r.found.Places += n
	}
	entry.Data = data
	if Kind(entry.Kind) == Snapshotted {
		if err := r.rewriteSnapshot(ctx, &entry); err != nil {
			return err
		}
	}
	r.entries = append(r.entries, entry)
	return nil
}

// rewriteSnapshot writes a snapshot without secrets under a new name, which the entry gets. One that
// is missing stays missing; one that was changed is rewritten as it is.
func (r *redaction) rewriteSnapshot(ctx context.Context, entry *journal.Entry) error {
	e, err := eventOf(*entry)
	if err != nil || e.Snapshot == nil {
		return err
	}
	old := *e.Snapshot
	r.kept[old.File] = true
	if filepath.Dir(old.File) != snapshotFolder {
		return nil
	}
	content, err := hostfile.Read(ctx, r.folder.path(r.id, old.File), maxSnapshot)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	clean, n := r.replaceContent(content)
	if n == 0 {
		return nil
	}
	s := newSnapshot(old.Name, nextFile(filepath.Base(old.File)), clean)
	if err := r.folder.writeSnapshot(r.id, s, clean); err != nil {
		return err
	}
	delete(r.kept, old.File)
	r.kept[s.File] = true
	r.found.Files++
	r.found.Places += n
	e.Snapshot = &s
	entry.Data, err = json.Marshal(e)
	return err
}

func (r *redaction) replaceContent(content []byte) ([]byte, int) {
	if json.Valid(content) {
		return ReplaceInJSON(content, r.replace)
	}
	text, n := r.replace(string(content))
	return []byte(text), n
}

// nextFile is another name for a file: 0007-diagnose.json, redacted-0007-diagnose.json, ... Two names
// are enough: of one of them the current journal knows nothing.
func nextFile(name string) string {
	const mark = "redacted-"
	if rest, marked := strings.CutPrefix(name, mark); marked {
		return "again-" + rest
	}
	if rest, again := strings.CutPrefix(name, "again-"); again {
		return mark + rest
	}
	return mark + name
}

// removeOthers removes what the record does not name: snapshots with secrets, and what a killed
// process has left.
func (r *redaction) removeOthers() error {
	var errs []error
	folder := r.folder.path(r.id, snapshotFolder)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, entry := range entries {
		if !r.kept[filepath.Join(snapshotFolder, entry.Name())] {
			errs = append(errs, os.Remove(filepath.Join(folder, entry.Name())))
		}
	}
	left, err := filepath.Glob(r.folder.path(r.id, ".*.tmp"))
	errs = append(errs, err)
	for _, name := range left {
		errs = append(errs, os.Remove(name))
	}
	if err := errors.Join(errs...); err != nil {
		return fault.New(fault.KindUnknown, "incident %s: the record is redacted, and an old file of it could not be removed: %w", r.id, err).
			WithHint("remove the files by hand, or repeat the redaction")
	}
	return nil
}

// ReplaceInJSON replaces in each string of a JSON text, also in the keys, and leaves everything else
// as it is.
func ReplaceInJSON(text []byte, replace func(string) (string, int)) ([]byte, int) {
	var out bytes.Buffer
	places := 0
	for len(text) > 0 {
		from := bytes.IndexByte(text, '"')
		if from < 0 {
			break
		}
		to := endOfString(text, from)
		out.Write(text[:from])
		literal := text[from:to]
		var value string
		if err := json.Unmarshal(literal, &value); err == nil {
			if clean, n := replace(value); n > 0 {
				literal, _ = json.Marshal(clean) // a string never fails
				places += n
			}
		}
		out.Write(literal)
		text = text[to:]
	}
	out.Write(text)
	return out.Bytes(), places
}

// endOfString is the place behind the string that begins at from.
func endOfString(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// Replacer makes the func that Redact takes: of secrets, and of patterns as a func of their own.
func Replacer(secrets []string, patterns ...func(string) (string, int)) func(string) (string, int) {
	known := map[string]bool{}
	for _, s := range secrets {
		if len(s) >= minSecret {
			known[s] = true
		}
	}
	sorted := slices.SortedFunc(maps.Keys(known), func(a, b string) int { return len(b) - len(a) })
	return func(text string) (string, int) {
		places := 0
		for _, s := range sorted {
			if n := strings.Count(text, s); n > 0 {
				text, places = strings.ReplaceAll(text, s, RedactedText), places+n
			}
		}
		for _, pattern := range patterns {
			clean, n := pattern(text)
			text, places = clean, places+n
		}
		return text, places
	}
}

// RedactedText replaces a secret.
const RedactedText = "[redacted]"

// minSecret is the least length of a secret that is looked for, in bytes: shorter words are in every
// text.
const minSecret = 4

// String says what a redaction did.
func (r Redaction) String() string {
	return fmt.Sprintf("%d places in %d events and %d snapshots", r.Places, r.Events, r.Files)
}
