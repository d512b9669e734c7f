package incident

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
// last, and again by the next redaction. Only texts and the ids of sandboxes change: a record that would
// not be read as before is fault.KindRefused, and nothing changes.
func (f Folder) Redact(ctx context.Context, id string, replace func(string) (string, int), e Event) (Redaction, error) {
	if _, err := os.Stat(f.path(id)); err != nil || !validID.MatchString(id) {
		return Redaction{}, notFoundError(id)
	}
	held, err := lock.Take(ctx, f.path(id, lockFile), lock.Holder{Run: id, Who: e.Actor.Who, Host: e.Actor.Host, PID: e.Actor.PID, Since: f.Now()}, lockWait)
	if err != nil {
		return Redaction{}, lockedError(id, err)
	}
	defer func() { _ = held.Release() }() // the process ends soon
	r := &redaction{folder: f, id: id, words: rewriter{replace: replace, aliases: map[string]string{}}, kept: map[string]bool{}}
	if e.Redaction != nil {
		r.found = *e.Redaction
	}
	if err := r.rewrite(ctx, e); err != nil {
		return Redaction{}, unwritableError(id, err)
	}
	return r.found, r.removeOthers()
}

type redaction struct {
	folder  Folder
	id      string
	words   rewriter
	found   Redaction
	entries []journal.Entry
	kept    map[string]bool // files that the new record names
	made    []string        // those of them that this redaction has written
	unsure  bool            // an entry about a snapshot does not say which
}

func (r *redaction) rewrite(ctx context.Context, e Event) (err error) {
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
	defer func() {
		if err != nil {
			r.removeMade()
		}
	}()
	for _, entry := range log.Entries {
		if err := r.rewriteEntry(ctx, entry); err != nil {
			return err
		}
	}
	if r.found.Places == 0 {
		return nil // nothing to say, and the chain stays
	}
	return r.replaceJournal(ctx, i, e)
}

// replaceJournal puts the new journal in the place of the old one, i, when it has been read back.
func (r *redaction) replaceJournal(ctx context.Context, i *Incident, e Event) error {
	e.Kind, e.Redaction = Redacted, &r.found
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	r.entries = append(r.entries, journal.Entry{At: e.At, Kind: string(Redacted), Data: data})
	text, err := journal.Rechain(r.id, r.entries)
	if err == nil {
		err = r.readBack(ctx, i, text)
	}
	if err != nil {
		return err
	}
	return hostfile.Replace(r.folder.path(r.id, r.id+".jsonl"), text, 0o600)
}

// readBack refuses a new journal that is not read as the old one was.
func (r *redaction) readBack(ctx context.Context, old *Incident, text []byte) error {
	after := &Incident{ID: r.id, State: Damaged}
	problem := ""
	log := journal.Parse(r.id, text, func(entry journal.Entry) {
		e, err := eventOf(entry)
		if err != nil && problem == "" {
			problem = err.Error()
		}
		after.replay(e)
	})
	switch {
	case problem != "":
	case log.Broken != "" || log.Truncated || len(after.Events) != len(old.Events)+1:
		problem = cmp.Or(log.Broken, "it would lose events")
	case after.State != old.State || len(after.Snapshots()) != len(old.Snapshots()):
		problem = "it would have another state or other snapshots"
	}
	if problem != "" {
		return r.damageError(problem)
	}
	for _, s := range after.Snapshots() {
		if slices.Contains(r.made, s.File) {
			if _, err := r.folder.ReadSnapshot(ctx, r.id, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *redaction) damageError(problem string) error {
	return fault.New(fault.KindRefused, "the redaction would damage the record of incident %s, and nothing was changed: %s", r.id, problem).
		WithHint("remove what must not stay by hand, in `incidents/%s` of the state directory", r.id)
}

func (r *redaction) removeMade() {
	for _, file := range r.made {
		_ = os.Remove(r.folder.path(r.id, file)) // the next redaction removes it
	}
}

func (r *redaction) rewriteEntry(ctx context.Context, entry journal.Entry) error {
	if Kind(entry.Kind) == Redacted { // who did that, and how much, has no text of others
		r.entries = append(r.entries, entry)
		return nil
	}
	data, n := r.words.rewrite(entry.Data, eventPlace)
	if n > 0 {
		if err := sameStructure(entry.Data, data, eventPlace); err != nil {
			return r.damageError(fmt.Sprintf("line %d: %s", entry.Seq, err))
		}
		r.found.Events++
		r.found.Places += n
	}
	entry.Data = data
	if err := r.rewriteSnapshot(ctx, &entry); err != nil {
		return err
	}
	r.entries = append(r.entries, entry)
	return nil
}

// rewriteSnapshot writes the snapshot of an entry, if it has one, without secrets under a new name,
// which the entry gets. One that is missing stays missing; one that was changed is rewritten as it is.
func (r *redaction) rewriteSnapshot(ctx context.Context, entry *journal.Entry) error {
	e, err := eventOf(*entry)
	if err != nil {
		return err
	}
	if e.Snapshot == nil {
		r.unsure = r.unsure || e.Kind == Snapshotted
		return nil
	}
	old := *e.Snapshot
	r.kept[old.File] = true
	if !old.isInside() {
		r.unsure = true
		return nil
	}
	content, err := hostfile.ReadRegular(ctx, r.folder.path(r.id, old.File), maxSnapshot)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	clean, n, err := r.words.rewriteSnapshot(content)
	if err != nil {
		return r.damageError(old.File + ": " + err.Error())
	}
	if n == 0 {
		return nil
	}
	s := newSnapshot(old.Name, nextFile(filepath.Base(old.File)), clean)
	r.made = append(r.made, s.File)
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
// process has left. Where an entry does not say which snapshot is its own, a file stays unless it is
// an older form of one that the record names.
func (r *redaction) removeOthers() error {
	var errs []error
	folder := r.folder.path(r.id, snapshotFolder)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && r.isLeft(entry.Name()) {
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

// ownFile is a name that AddSnapshot, nextFile or a write that was cut off gives.
var ownFile = regexp.MustCompile(`^(?:(?:redacted-|again-)?([0-9]{4,}-[a-z0-9][a-z0-9._-]*)|\..*\.tmp)$`)

// isLeft says that a file among the snapshots holds what the record no longer names.
func (r *redaction) isLeft(name string) bool {
	parts := ownFile.FindStringSubmatch(name)
	if parts == nil || r.kept[filepath.Join(snapshotFolder, name)] {
		return false
	}
	if parts[1] == "" || !r.unsure {
		return true
	}
	for file := range r.kept {
		if filepath.Dir(file) != snapshotFolder {
			continue
		}
		if kept := ownFile.FindStringSubmatch(filepath.Base(file)); kept != nil && kept[1] == parts[1] {
			return true
		}
	}
	return false
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
			clean, n := replaceBetween(text, pattern)
			text, places = clean, places+n
		}
		return text, places
	}
}

// replaceBetween leaves what is redacted already as it is, so that a second redaction by the same
// pattern finds nothing.
func replaceBetween(text string, replace func(string) (string, int)) (string, int) {
	places := 0
	parts := strings.Split(text, RedactedText)
	for i, part := range parts {
		clean, n := replace(part)
		parts[i], places = clean, places+n
	}
	return strings.Join(parts, RedactedText), places
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
