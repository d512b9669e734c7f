package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/yamltext"
)

// importLimit is the most bytes of one imported file.
const importLimit = 1 << 20

// ImportedSetting is one setting that a foreign file has.
type ImportedSetting struct {
	Key   string // of sbx: "run.memory"
	Value string
	From  string // "base.yaml:3 daytona.sandbox_memory_gb"
	Note  string // why it is written as a comment; "" = it is written
}

// IgnoredSetting is one setting of a foreign file that is not imported.
type IgnoredSetting struct {
	Key    string // "" = a line that is no setting
	From   string // "base.yaml:7"
	Reason string
}

// importTarget is what a foreign key means here.
type importTarget struct {
	key      string // of sbx
	variable string // of runVariables, with unit, range and default; "" = none
	secret   bool   // its value is not read; the profile names the variable with the secret instead
}

const (
	importedProfile = "daytona" // the profile, its type, and the section of the foreign file
	keyImportURL    = "providers." + importedProfile + ".url"
	keyImportToken  = "providers." + importedProfile + ".token" + suffixVariable
	importTokenEnv  = "DAYTONA_API_KEY"
)

// importTargets are the keys of OmoiOS's YAML, with dots, and its environment variables.
func importTargets() map[string]importTarget {
	all := map[string]importTarget{
		"daytona.api_url": {key: keyImportURL}, "DAYTONA_API_URL": {key: keyImportURL},
		"daytona.api_key": {key: keyImportToken, secret: true}, importTokenEnv: {key: keyImportToken, secret: true},
	}
	yamlNames := map[string]string{
		nameMemory: "daytona.sandbox_memory_gb", nameCPU: "daytona.sandbox_cpu", nameDisk: "daytona.sandbox_disk_gb", nameSnapshot: "daytona.snapshot",
	}
	for _, v := range runVariables() {
		if !runSettingOf(v.setting).remoteOnly() {
			continue
		}
		target := importTarget{key: runSettingOf(v.setting).settingKey(), variable: v.name}
		all[v.name] = target
		if name := yamlNames[v.setting]; name != "" {
			all[name] = target
		}
	}
	return all
}

// foreignEntry is one key with its value in a foreign file.
type foreignEntry struct {
	key, value string
	from       string // FILE:LINE
	plain      bool   // the value is one text, number or switch
}

// readForeign reads one file: lines of KEY=VALUE, or YAML. A file that cannot be read, and a broken one,
// is fault.KindUsage with its line; no value is quoted.
func readForeign(ctx context.Context, path string) ([]foreignEntry, []IgnoredSetting, error) {
	content, err := hostfile.File{Path: path, Flag: "--from", Limit: importLimit, Hint: "name a YAML file of OmoiOS, or its .env file"}.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	if isVariablesFile(string(content)) {
		entries, ignored := readVariablesFile(path, string(content))
		return entries, ignored, nil
	}
	r, root, some := yamltext.Read(content)
	var entries []foreignEntry
	if some && len(r.Mistakes) == 0 {
		entries = foreignEntries(r, path, "", root)
	}
	if len(r.Mistakes) > 0 {
		return nil, nil, brokenForeign(path, r.Mistakes[0].Line, r.Mistakes[0].Message)
	}
	return entries, nil, nil
}

func brokenForeign(path string, line int, message string) error {
	return fault.Usage("--from %s:%d: %s", path, line, message).WithHint("correct the file; nothing was written")
}

// foreignEntries lists the leaves below a mapping, with dots between their keys.
func foreignEntries(r *yamltext.Reader, path, prefix string, mapping value) (all []foreignEntry) {
	for _, v := range r.Pairs(mapping, "the file") {
		key := prefix + quoteless(v.Name())
		if v.Node.Kind == yaml.MappingNode && len(v.Node.Content) > 0 {
			all = append(all, foreignEntries(r, path, key+".", v)...)
			continue
		}
		all = append(all, foreignEntry{key, v.Node.Value, fmt.Sprintf("%s:%d", path, v.KeyAt().Line), v.Node.Kind == yaml.ScalarNode && !yamltext.IsEmpty(v.Node)})
	}
	return all
}

// quoteless is a key without what a line of text cannot show; a long one is cut.
func quoteless(key string) string {
	const longest = 100
	key = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r > 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, key)
	if len(key) > longest {
		return strings.ToValidUTF8(key[:longest], "") + "..."
	}
	return key
}

// variableLine is a line of a .env file: name and value.
func variableLine(line string) (name, value string, ok bool) {
	found := regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`).FindStringSubmatch(line)
	if found == nil {
		return "", "", false
	}
	return found[1], unquotedValue(strings.TrimSpace(found[2])), true
}

// unquotedValue is a value without the quotes around it and the comment behind it, as programs read .env files: quotes
// end at the next one like the first, which a backslash takes for a character between double ones; a comment begins
// behind a blank or a tab.
func unquotedValue(text string) string {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		if inner, rest, closed := cutQuoted(text); closed && (rest == "" || isBlankLine(rest)) {
			return inner
		}
	}
	for i := range text {
		if text[i] == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t') {
			text = text[:i]
			break
		}
	}
	return strings.TrimSpace(text)
}

// cutQuoted is what is between the first quote of a text and the one that closes it, and what is behind that.
func cutQuoted(text string) (inner, rest string, closed bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == text[0]:
			return b.String(), text[i+1:], true
		case text[0] == '"' && text[i] == '\\' && i+1 < len(text) && strings.IndexByte(`"\$`, text[i+1]) >= 0:
			i++
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}

func isBlankLine(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// isVariablesFile says that the first line that is no comment is KEY=VALUE.
func isVariablesFile(content string) bool {
	for line := range strings.Lines(content) {
		if !isBlankLine(line) {
			_, _, ok := variableLine(strings.TrimRight(line, "\r\n"))
			return ok
		}
	}
	return false
}

func readVariablesFile(path, content string) (entries []foreignEntry, ignored []IgnoredSetting) {
	lines := strings.Split(content, "\n")
	for i := 0; i < len(lines); i++ {
		from, line := fmt.Sprintf("%s:%d", path, i+1), strings.TrimRight(lines[i], "\r")
		name, value, ok := variableLine(line)
		switch more := linesOfValue(lines[i:]); {
		case isBlankLine(line):
		case !ok:
			ignored = append(ignored, IgnoredSetting{From: from, Reason: "the line is not KEY=VALUE"})
		case more > 0: // no line inside of a value is a setting
			ignored = append(ignored, IgnoredSetting{name, from, "its value has several lines"})
			i += more
		default:
			entries = append(entries, foreignEntry{name, value, from, true})
		}
	}
	return entries, ignored
}

// linesOfValue is how many lines belong to the first one, whose value has a quote that one of them closes.
func linesOfValue(lines []string) int {
	quote := openQuote(lines[0])
	if quote == 0 {
		return 0
	}
	return 1 + slices.IndexFunc(lines[1:], func(line string) bool { return strings.IndexByte(line, quote) >= 0 })
}

// openQuote is the quote with which the value of a line begins, and which the line does not close; 0 = there is none.
func openQuote(line string) byte {
	_, value, _ := strings.Cut(line, "=")
	if value = strings.TrimSpace(value); value == "" || isBlankLine(line) || value[0] != '"' && value[0] != '\'' {
		return 0
	}
	if _, _, closed := cutQuoted(value); closed {
		return 0
	}
	return value[0]
}

// translateForeign gives the settings of all entries, of which a later one wins, and what is ignored.
func translateForeign(entries []foreignEntry) (settings []ImportedSetting, ignored []IgnoredSetting, err error) {
	byKey, targets := map[string]ImportedSetting{}, importTargets()
	var errs []error
	for _, e := range entries {
		target, known := targets[e.key]
		if !known {
			ignored = append(ignored, IgnoredSetting{e.key, e.from, "unknown key"})
			continue
		}
		value, mistake := target.translate(e)
		if mistake != nil {
			errs = append(errs, fault.Usage("--from %s: %s %w", e.from, e.key, mistake).WithHint("correct the file; nothing was written"))
			continue
		}
		byKey[target.key] = ImportedSetting{Key: target.key, Value: value, From: e.from + " " + e.key}
	}
	for _, key := range importedKeys() {
		if s, ok := byKey[key]; ok {
			settings = append(settings, s)
		}
	}
	return settings, ignored, errors.Join(errs...)
}

// importedKeys are the settings that an import can have, in the order in which they are written.
func importedKeys() []string {
	keys := []string{keyImportURL, keyImportToken}
	for _, s := range runSizes() {
		keys = append(keys, keyRun+"."+s.name)
	}
	return keys
}

// translate gives the value here. The value of a secret is never read.
func (t importTarget) translate(e foreignEntry) (string, error) {
	variables := runVariables()
	at := slices.IndexFunc(variables, func(v runVariable) bool { return v.name == t.variable })
	switch {
	case t.secret:
		return importTokenEnv, nil
	case !e.plain || e.value == "":
		return "", errors.New("has no value")
	case strings.Contains(e.value, "${"):
		return "", errors.New("takes its value from a variable, which is not read here: write the value")
	case at >= 0:
		return variables[at].translate(e.value)
	}
	return e.value, checkForeignURL(e.value)
}

// checkForeignURL refuses an address that is none, and one with a secret in it. It quotes neither.
func checkForeignURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is no address of an API")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("has more than an address: a name, a password or a query may be a secret")
	}
	return nil
}
