package runbook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// Library is where runbooks are found: the shipped ones, and a folder of the operator whose
// documents replace shipped ones of the same id.
type Library struct {
	Shipped fs.FS
	Folder  string // "" or not there = none
}

// Catalog are documents with what is wrong with them.
type Catalog struct {
	Books    []*Runbook // by id; those that could be understood
	Findings []Finding  // of reading them
}

// Load reads all runbooks. The error is that of a folder or file that cannot be read.
func (l Library) Load(ctx context.Context) (*Catalog, error) {
	catalog := &Catalog{}
	own, err := l.ownFiles()
	if err != nil {
		return nil, err
	}
	for _, path := range own {
		if err := catalog.AddFile(ctx, path); err != nil {
			return nil, err
		}
	}
	mine := len(catalog.Books)
	names, err := fs.Glob(l.Shipped, "*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := fs.ReadFile(l.Shipped, name)
		if err != nil {
			return nil, err
		}
		book, found := Parse("runbooks/"+name, content)
		catalog.Findings = append(catalog.Findings, found...)
		if book != nil && !slices.ContainsFunc(catalog.Books[:mine], func(b *Runbook) bool { return b.Metadata.ID == book.Metadata.ID }) {
			book.Origin.Shipped = true
			catalog.Books = append(catalog.Books, book)
		}
	}
	slices.SortStableFunc(catalog.Books, func(a, b *Runbook) int { return strings.Compare(string(a.Metadata.ID), string(b.Metadata.ID)) })
	return catalog, nil
}

// ownFiles are the documents of the operator's folder.
func (l Library) ownFiles() ([]string, error) {
	if l.Folder == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(l.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Usage("the folder of runbooks cannot be read: %w", err)
	}
	if len(entries) > 0 { // its steps will act
		if err := hostfile.CheckDirectory(l.Folder); err != nil {
			return nil, hostfile.Refused("the folder of runbooks", l.Folder, err, "name a document of your own with --file")
		}
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(l.Folder, e.Name())
		ext := filepath.Ext(e.Name())
		if strings.HasPrefix(e.Name(), ".") || ext != ".yaml" && ext != ".yml" { // an editor's lock or backup
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue // a directory, or a pipe that nobody writes
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// AddFile reads a document of the operator.
func (s *Catalog) AddFile(ctx context.Context, path string) error {
	content, err := hostfile.Read(ctx, path, MaxFile)
	switch _, large := errors.AsType[*hostfile.TooLargeError](err); {
	case large:
		content = make([]byte, MaxFile+1) // Parse refuses it with its place
	case ctx.Err() != nil:
		return err
	case err != nil:
		return fault.Usage("the runbook cannot be read: %w", err).WithHint("name a runbook by its id, or a file of YAML")
	}
	book, found := Parse(path, content)
	s.Findings = append(s.Findings, found...)
	if book != nil {
		s.Books = append(s.Books, book)
	}
	return nil
}

// AddFrom adds the runbook with an id of another shelf, with what was found as it was read; false = there is none.
func (s *Catalog) AddFrom(other *Catalog, id string) bool {
	i := slices.IndexFunc(other.Books, func(b *Runbook) bool { return string(b.Metadata.ID) == id })
	if i < 0 {
		return false
	}
	book := other.Books[i]
	s.Books = append(s.Books, book)
	for _, f := range other.Findings {
		if f.File == book.Origin.File {
			s.Findings = append(s.Findings, f)
		}
	}
	return true
}

// Find is the runbook with an id. One with errors of reading is refused, with all of them.
func (s *Catalog) Find(id string) (*Runbook, error) {
	for _, b := range s.Books {
		if string(b.Metadata.ID) == id {
			return b, s.errorsOf(b.Origin.File)
		}
	}
	if err := joinErrors(s.Findings); err != nil && len(s.Books) == 0 {
		return nil, err
	}
	return nil, fault.New(fault.KindNotFound, "no runbook is called %q", id).WithHint("%s", fault.Meant(id, s.IDs()))
}

func (s *Catalog) errorsOf(file string) error {
	return joinErrors(slices.DeleteFunc(slices.Clone(s.Findings), func(f Finding) bool { return f.File != file }))
}

// IDs are the ids of all runbooks.
func (s *Catalog) IDs() []string {
	var ids []string
	for _, b := range s.Books {
		ids = append(ids, string(b.Metadata.ID))
	}
	return ids
}

// Lint are all findings about the documents: of reading, of each, and of all together with others.
func (s *Catalog) Lint(c Context, others ...*Runbook) []Finding {
	found := slices.Clone(s.Findings)
	for _, b := range s.Books {
		found = append(found, b.Lint(c)...)
	}
	found = append(found, s.alertsLost(c.Shipped, others)...)
	found = append(found, slices.DeleteFunc(LintAll(append(others, s.Books...)), func(f Finding) bool {
		return !slices.ContainsFunc(s.Books, func(b *Runbook) bool { return b.Origin.File == f.File })
	})...)
	sortFindings(found)
	return found
}

// alertsLost warns of a document that replaces a shipped one, where an alert of that one leads to no
// runbook any more.
func (s *Catalog) alertsLost(shipped, others []*Runbook) []Finding {
	var found []Finding
	for _, old := range shipped {
		i := slices.IndexFunc(s.Books, func(b *Runbook) bool { return b.Metadata.ID == old.Metadata.ID && !b.Origin.Shipped })
		if i < 0 {
			continue
		}
		var lost []string
		for _, a := range old.AlertNames() {
			if !slices.ContainsFunc(slices.Concat(s.Books, others), func(b *Runbook) bool { return slices.Contains(b.AlertNames(), a) }) {
				lost = append(lost, a)
			}
		}
		if own := s.Books[i]; len(lost) > 0 {
			names := strings.Join(lost, ", ")
			found = append(found, own.source.finding(own.source.places["metadata.id"], Warning, RuleNoRunbook,
				"it replaces the shipped "+string(old.Metadata.ID)+", and its alerts lead to no runbook: "+names, "alerts: ["+names+"]"))
		}
	}
	return found
}

// RefuseToReplace says why a new document with this id and alert must not be begun from nothing: it
// would replace a shipped one, or its alert leads to another already. Alert is "" for none.
func (s *Catalog) RefuseToReplace(id, alert string, shipped *Catalog) error {
	if slices.Contains(shipped.IDs(), id) {
		return fault.New(fault.KindRefused, "%s is a runbook that sbx ships, and this one would replace it", id).
			WithHint("`sbx runbook new %s --copy` writes the shipped one, to be changed; else choose another id", id)
	}
	for _, b := range s.Books {
		if alert == "" || string(b.Metadata.ID) == id || !slices.Contains(b.AlertNames(), alert) {
			continue
		}
		hint := "take it out of " + b.Origin.File + " first"
		if b.Origin.Shipped {
			hint = fmt.Sprintf("change that one: `sbx runbook new %s --copy` writes it into your folder", b.Metadata.ID)
		}
		return fault.New(fault.KindRefused, "the alert %s leads to the runbook %s already, and an alert has one", alert, b.Metadata.ID).WithHint("%s", hint)
	}
	return nil
}

// ForAlert is the runbook that an alert leads to.
func (s *Catalog) ForAlert(alert string) (*Runbook, error) {
	var all []string
	for _, b := range s.Books {
		if slices.Contains(b.AlertNames(), alert) {
			return b, nil
		}
		all = append(all, b.AlertNames()...)
	}
	return nil, fault.New(fault.KindNotFound, "no runbook is for the alert %q", alert).WithHint("%s", fault.Meant(alert, all))
}
