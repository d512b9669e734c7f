package config

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// AnyValue is the value of a label in `owned` that stands for every value.
const AnyValue = "*"

// OwnChange is a change of a file that says whose the sandboxes of profiles are.
type OwnChange struct {
	Path     string   // of the file
	Profiles []string // whose sandboxes it is about
	Owned    Owned
	Diff     []string // lines that go ("-...") and come ("+..."); none = the file says so already

	before, after string
	mode          os.FileMode
}

// Own plans to write into the configuration file which sandboxes of these profiles
// bulk endings may touch: the file of --config, else the user's. Nothing is written
// before Write. Every other setting and all comments stay. An unknown profile, and a
// rule under which nothing could ever be ended, are fault.KindUsage; a file that only
// a person can edit is fault.KindRefused.
func Own(ctx context.Context, in Input, profiles []string, owned Owned) (OwnChange, error) {
	var none OwnChange
	flags := in.Flags
	in.Flags = map[string]string{}
	for name, text := range flags {
		if name != flagProvider { // which would make all of their sandboxes ours
			in.Flags[name] = text
		}
	}
	l, err := newLoaded(ctx, in)
	if err != nil {
		return none, err
	}
	target, err := l.ownFile()
	if err != nil {
		return none, err
	}
	content, mode, err := l.ownContent(ctx, target)
	if err != nil {
		return none, err
	}
	c := OwnChange{Path: target.Path, Profiles: profiles, Owned: owned, before: string(content), after: string(content), mode: mode}
	for _, name := range slices.Backward(profiles) { // each goes before what is there
		kind, err := l.checkOwnable(name, owned)
		if err != nil {
			return none, err
		}
		if c.after, err = setOwned(target.Path, c.after, name, kind.Name, owned, l.in.Types); err != nil {
			return none, err
		}
	}
	c.Diff = lineDiff(c.before, c.after)
	return c, nil
}

func (l *loader) ownFile() (File, error) {
	if l.file.Path != "" {
		return l.file, nil
	}
	return File{}, fault.Usage("there is no home directory for a user file").WithHint("name a file with --config FILE")
}

func (l *loader) ownContent(ctx context.Context, f File) ([]byte, os.FileMode, error) {
	info, err := os.Stat(f.Path)
	if os.IsNotExist(err) {
		return nil, modeFile, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, fault.New(fault.KindRefused, "%s is not a regular file and was not changed", f.Path).WithHint("name another with --config FILE")
	}
	content, err := f.readContent(ctx)
	return content, info.Mode().Perm(), err
}

// checkOwnable refuses a decision that would mean nothing.
func (l *loader) checkOwnable(name string, owned Owned) (providers.Type, error) {
	p, known := l.config.Find(name)
	if !known {
		return providers.Type{}, l.withProfileHint(
			fault.Usage("there is no profile %q%s", name, suggestAllowed(name, l.config.profileNames())).WithHint("`sbx providers` lists the profiles"), name,
		)
	}
	kind, _ := findType(l.in.Types, p.Type)
	if !owned.All && kind.NoLabels {
		return kind, fault.Usage("sandboxes of %s have no labels, so that this rule could never terminate one", name).WithHint("use --all, or leave it unchanged")
	}
	return kind, nil
}

// OwnedLabels makes the rule of these labels; a value of AnyValue takes every value.
func OwnedLabels(labels map[string]string) (Owned, error) {
	if len(labels) == 0 {
		return Owned{}, fault.Usage("no label is named; without one nothing could be terminated").WithHint("write --label KEY=VALUE, or --all")
	}
	for key, value := range labels {
		if value == "" {
			return Owned{}, fault.Usage("the label %s has no value", key).WithHint("write %s=VALUE; * takes any value", key)
		}
		if strings.EqualFold(strings.TrimSpace(key), sandbox.LabelKeep) {
			return Owned{}, fault.Usage("the label %s protects a sandbox, so that it cannot mark one as yours to terminate", key).WithHint("name another label")
		}
	}
	return Owned{Labels: labels}, nil
}

// Write changes the file. A reader and a crash see the old or the new content.
func (c OwnChange) Write() error {
	if len(c.Diff) == 0 {
		return nil
	}
	if err := writeFile(withoutLinks(c.Path), []byte(c.after), c.mode); err != nil { // a link stays one
		return fault.New(
			fault.KindUnknown, "%s cannot be written: %w", c.Path, withoutPath(err),
		).WithHint("check that you may write there; --config FILE names another file")
	}
	return nil
}

// withoutLinks is the path without links.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}

// lineDiff shows the lines in which two texts differ.
func lineDiff(before, after string) []string {
	a, b := splitLines(before), splitLines(after)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	diff := make([]string, 0, len(a)+len(b))
	for _, line := range a {
		diff = append(diff, "-"+line)
	}
	for _, line := range b {
		diff = append(diff, "+"+line)
	}
	return diff
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// sameBut says that two documents differ at most in what they say of the owner of one
// profile, and that the second one says what it should.
func sameBut(before, after *document, profile string, owned Owned) bool {
	said := ""
	strip := func(d *document) (blocks map[string]any) {
		blocks = map[string]any{}
		for _, b := range d.profiles {
			if b.name.text == profile {
				if b.owned != nil {
					said = b.owned.String()
				}
				continue
			}
			blocks[b.name.text] = []any{b.kind, b.owned}
		}
		return blocks
	}
	saidBy := func(d *document) map[string]any {
		all := map[string]any{
			"production": wordTexts(d.production), "use": wordTexts(d.use), "labels": values(d.labels), "ids": values(d.ids),
		}
		for key, e := range d.scalars {
			all["scalar "+key] = []any{e.text, e.variable, strings.Join(e.command, "\x00")}
		}
		return all
	}
	if !reflect.DeepEqual(strip(before), strip(after)) || !reflect.DeepEqual(saidBy(before), saidBy(after)) {
		return false
	}
	return said == owned.String()
}
