package config

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/yamltext"
)

// Imported is what foreign files mean as a configuration of sbx.
type Imported struct {
	Settings []ImportedSetting
	Ignored  []IgnoredSetting
	Block    string // the configuration, with comments

	change OwnChange
}

// Path is the file that Write changes; "" before Plan, and where nothing changes.
func (i Imported) Path() string {
	if len(i.change.Diff) == 0 {
		return ""
	}
	return i.change.Path
}

// Import translates the settings of OmoiOS in these files, YAML or lines of KEY=VALUE: later files win.
// Nothing is written before Write. A broken file, and a known key with a bad value, is fault.KindUsage
// that names line and reason. No value of a secret is in the result.
func Import(ctx context.Context, paths []string) (Imported, error) {
	var entries []foreignEntry
	var none, out Imported
	for _, path := range paths {
		more, ignored, err := readForeign(ctx, path)
		if err != nil {
			return none, err
		}
		entries, out.Ignored = append(entries, more...), append(out.Ignored, ignored...)
	}
	settings, ignored, err := translateForeign(entries)
	if err != nil {
		return none, err
	}
	out.Settings, out.Ignored = withSizeNotes(settings), append(out.Ignored, ignored...)
	out.Block = out.asBlock()
	return out, nil
}

// sizeNote is why a size is not written beside a snapshot.
const sizeNote = "not set: the snapshot decides, and Daytona refuses both"

// withSizeNotes marks the sizes that a snapshot makes impossible.
func withSizeNotes(settings []ImportedSetting) []ImportedSetting {
	has := func(s ImportedSetting) bool { return s.Key == runSettingOf(nameSnapshot).settingKey() }
	if !slices.ContainsFunc(settings, has) {
		return settings
	}
	for i, s := range settings {
		if slices.Contains([]string{nameMemory, nameCPU, nameDisk}, strings.TrimPrefix(s.Key, keyRun+".")) {
			settings[i].Note = sizeNote
		}
	}
	return settings
}

// sections are the lines of the block below `providers: daytona:` and below `run:`, without indentation.
func (i Imported) sections() (profile, run []string) {
	given := map[string]bool{}
	for _, s := range i.Settings {
		given[s.Key] = true
		name := s.Key[strings.LastIndex(s.Key, ".")+1:]
		line := name + ": " + plainAmount(s.Value) + " # from " + s.From
		switch {
		case s.Key == keyImportToken:
			profile = append(profile, line+"; its value is not copied: export "+importTokenEnv)
		case s.Key == keyImportURL:
			profile = append(profile, line)
		case s.Note != "":
			run = append(run, "#"+line+"; "+s.Note)
		default:
			run = append(run, line)
		}
	}
	for _, v := range runVariables() {
		s := runSettingOf(v.setting)
		if s.remoteOnly() && v.fallback != "" && !given[s.settingKey()] {
			text, _ := v.translate(v.fallback) // the default of a table
			run = append(run, "#"+s.name+": "+text+" # the default of OmoiOS; the files do not set it")
		}
	}
	if len(profile) > 0 {
		profile = append([]string{"type: " + importedProfile}, profile...)
	}
	return profile, run
}

func (i Imported) asBlock() string {
	var b strings.Builder
	profile, run := i.sections()
	if len(profile) > 0 {
		b.WriteString("providers:\n  " + importedProfile + ":\n")
		for _, line := range profile {
			b.WriteString("    " + line + "\n")
		}
	}
	if slices.ContainsFunc(run, isWritten) {
		b.WriteString("run: # of every service: sbx has no sizes of one profile\n")
	} else {
		b.WriteString("#run:\n")
	}
	for _, line := range run {
		b.WriteString("  " + line + "\n")
	}
	for _, s := range i.Ignored {
		fmt.Fprintf(&b, "# not imported: %s: %s%s\n", s.From, strings.TrimPrefix(s.Key+": ", ": "), s.Reason)
	}
	return b.String()
}

// plainAmount is plainOrQuoted, with amounts such as 4G as people write them.
func plainAmount(text string) string {
	if regexp.MustCompile(`^[0-9]+G?$`).MatchString(text) {
		return text
	}
	return plainOrQuoted(text)
}

func isWritten(line string) bool { return !strings.HasPrefix(line, "#") }

// Plan prepares the change of the configuration file: that of --config, else the user's. A profile or a
// setting that is there is fault.KindRefused, and so is a file that only a person can edit.
func (i Imported) Plan(ctx context.Context, in Input) (Imported, error) {
	l, err := newLoaded(ctx, in)
	if err != nil {
		return i, err
	}
	target, err := l.ownFile()
	if err != nil {
		return i, err
	}
	content, mode, err := l.ownContent(ctx, target)
	if err != nil {
		return i, err
	}
	i.change = OwnChange{Path: target.Path, before: string(content), mode: mode}
	if i.change.after, err = i.addTo(target.Path, string(content), l); err != nil {
		return i, err
	}
	i.change.Diff = lineDiff(i.change.before, i.change.after)
	return i, nil
}

// Write changes the file as Plan has prepared it.
func (i Imported) Write() error { return i.change.Write() }

// addTo gives the text of a file with the imported settings, and reads it: a text that is not valid is
// not given out.
func (i Imported) addTo(path, text string, l *loader) (string, error) {
	root, _ := yamltext.Parse([]byte(text)) // newLoaded has read it
	for _, s := range i.Settings {
		section, name, _ := strings.Cut(s.Key, ".")
		name, _, _ = strings.Cut(name, ".")
		if s.Note == "" && valueAt(valueAt(root, section), name) != nil {
			return "", fault.New(fault.KindRefused, "%s has %s.%s already and was not changed", path, section, name).WithHint("%s", hintCopy)
		}
	}
	profile, run := i.sections()
	run = slices.DeleteFunc(run, func(line string) bool { return !isWritten(line) && !strings.Contains(line, sizeNote) })
	if len(profile) > 0 {
		profile = append([]string{importedProfile + ":"}, indented("  ", profile)...)
	}
	text, first := addBelow(text, "providers", profile)
	text, second := addBelow(text, keyRun, run)
	if _, errs := decodeFile(path, []byte(text), l.in.Types); !first || !second || len(errs) > 0 {
		return "", fault.New(fault.KindRefused, "%s is written in a way that cannot be changed safely", path).WithHint("%s", hintCopy)
	}
	return text, nil
}

const hintCopy = "without --write the block is printed; copy what you need"

// addBelow adds lines at the top of a mapping of the file, or as a new one at its end. It reports false
// for a form that it does not know.
func addBelow(text, key string, lines []string) (string, bool) {
	if !slices.ContainsFunc(lines, isWritten) {
		return text, true
	}
	root, _ := yamltext.Parse([]byte(text))
	e, value := &editor{lines: splitLines(text)}, valueAt(root, key)
	switch {
	case root != nil && isFlowMapping(root), value != nil && (value.Kind != yaml.MappingNode || isFlowMapping(value)), value == nil && keyAt(root, key) != nil:
		return text, false
	case value != nil:
		e.insertLine(keyAt(root, key).Line, indented(indentOf(value.Content[0]), lines)...)
	default:
		e.insertLine(len(e.lines), append([]string{key + ":"}, indented("  ", lines)...)...)
	}
	return strings.Join(e.lines, "\n") + "\n", true
}

func indented(by string, lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, by+line)
	}
	return out
}
