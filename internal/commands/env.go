package commands

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/output"
)

// envFlags say which variables a program gets. Their values reach the program
// and nothing else: no message, no record, no document.
type envFlags struct {
	entries []string // of --env: K=V, or K for the caller's own value
	files   []string // of --env-file
}

func (e *envFlags) addFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&e.entries, "env", nil, "set variable `K=V`, or K with its value here (repeatable)")
}

func (e *envFlags) addFiles(f *pflag.FlagSet) {
	f.StringArrayVar(&e.files, "env-file", nil, "set the variables of `FILE`, a K=V per line (repeatable)")
}

// readVariables gathers the variables as KEY=VALUE, each name once: a later file wins
// over an earlier one, and --env over every file. Mistakes are
// fault.KindUsage and never show what may be a value.
func (e *envFlags) readVariables(ctx context.Context, d *Deps) ([]string, error) {
	vars := variables{at: map[string]int{}}
	for _, name := range e.files {
		if err := vars.readFile(ctx, d, name); err != nil {
			return nil, err
		}
	}
	for i, entry := range e.entries {
		key, value, given := strings.Cut(entry, "=")
		switch {
		case hasByteOrderMark(key):
			return nil, fault.Usage("--env: number %d begins with a byte order mark", i+1).WithHint("leave it out: it would be a part of the name")
		case isQuoted(key):
			return nil, fault.Usage("--env: the name of number %d is in quotes", i+1).WithHint("%s", envHint)
		case !usableName(key):
			return nil, fault.Usage("--env: number %d does not begin with a usable name", i+1).WithHint("%s", envHint)
		case strings.ContainsRune(value, 0):
			return nil, fault.Usage("--env %s: the value holds a NUL byte", key).WithHint("a variable cannot contain one")
		case !given:
			var set bool
			if value, set = d.Process.Lookup(key); !set {
				return nil, fault.Usage("--env %s: it is not set here", key).WithHint("write %s=VALUE, or export it first", key)
			}
		}
		vars.setVariable(key, value)
	}
	return vars.list, nil
}

const envHint = "write NAME=VALUE; a name has letters, digits and _ . - and begins with a letter or _"

// variables is an environment in the making.
type variables struct {
	list []string
	at   map[string]int
}

func (v *variables) setVariable(key, value string) {
	i, known := v.at[key]
	if !known {
		i = len(v.list)
		v.at[key] = i
		v.list = append(v.list, "")
	}
	v.list[i] = key + "=" + value
}

// maxEnvFile is above what a process can be given: Linux takes 128 KiB in one
// variable, and a quarter of the stack limit, 2 MiB by default, in all.
const maxEnvFile = 2 << 20

func (v *variables) readFile(ctx context.Context, d *Deps, name string) error {
	if name == "" {
		return fault.Usage("--env-file: no file is named").WithHint("is a shell variable unset?")
	}
	text, err := hostfile.File{Flag: "--env-file", Path: d.Path(name), Limit: maxEnvFile, Hint: "name a readable file of K=V lines"}.Read(ctx)
	if err != nil {
		return err
	}
	return v.parseLines(name, string(text))
}

// parseLines reads K=V lines. Values stay as they are, quotes included; a carriage return at
// the end of a line is dropped. A mistake names file and line only, since any part of the line
// may be a secret.
func (v *variables) parseLines(name, text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if start := strings.TrimSpace(line); start == "" || start[0] == '#' {
			continue
		}
		key, value, given := strings.Cut(line, "=")
		switch {
		case hasByteOrderMark(key):
			return fault.Usage(
				"%s:%d: the line begins with a byte order mark", output.Escape(name), number,
			).WithHint("save the file as UTF-8 without a byte order mark (BOM)")
		case given && isQuoted(key):
			return fault.Usage("%s:%d: the name is in quotes", output.Escape(name), number).WithHint("write NAME=VALUE without quotes: they would be a part of the name")
		}
		if !given || !usableName(key) || strings.ContainsRune(value, 0) {
			return fault.Usage("%s:%d: this line is not NAME=VALUE", output.Escape(name), number).WithHint("%s", envHint)
		}
		v.setVariable(key, value)
	}
	return nil
}

// hasByteOrderMark reports whether a text begins with the mark of UTF-8 or UTF-16.
func hasByteOrderMark(text string) bool {
	return slices.ContainsFunc([]string{"\uFEFF", "\xff\xfe", "\xfe\xff"}, func(mark string) bool { return strings.HasPrefix(text, mark) })
}

// isQuoted reports whether a name, or the whole entry that it begins, is in quotes.
func isQuoted(key string) bool {
	key = strings.TrimSpace(key)
	return key != "" && (key[0] == '"' || key[0] == '\'')
}

func usableName(key string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`).MatchString(key)
}

// minSecret is the shortest value that is blotted out of messages: shorter
// ones are words like "true", which belong there.
const minSecret = 8

// hideValues keeps the values of env out of what p says on errors: a provider may
// quote the request that it refuses.
func hideValues(p *output.Printer, env []string) {
	for _, entry := range env {
		if _, value, _ := strings.Cut(entry, "="); len(value) >= minSecret {
			p.Secrets = append(p.Secrets, value)
		}
	}
}
