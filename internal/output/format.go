package output

import (
	"context"
	"slices"
	"strings"
	"text/template"

	"github.com/itchyny/gojq"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// FormatName is the word that -o takes.
type FormatName string

// The closed list of formats (CLI, "FORMAT").
const (
	Table        FormatName = "table"
	WideTable    FormatName = "wide"
	CSV          FormatName = "csv"
	JSON         FormatName = "json"
	NDJSON       FormatName = "ndjson"
	YAML         FormatName = "yaml"
	NameOnly     FormatName = "name"
	Nagios       FormatName = "nagios"
	Template     FormatName = "template"
	TemplateFile FormatName = "template-file"
	JQ           FormatName = "jq"
)

// Formats lists every format in the order of the help text.
func Formats() []FormatName {
	return []FormatName{Table, WideTable, CSV, JSON, NDJSON, YAML, NameOnly, Nagios, Template, TemplateFile, JQ}
}

// RowFormats are the formats that only a list of rows can fill.
func RowFormats() []FormatName { return []FormatName{CSV, NameOnly} }

// Documents are the formats in which one command makes one closed document;
// commands that stream without an end refuse them.
func Documents() []FormatName {
	return []FormatName{JSON, YAML, Template, TemplateFile, JQ}
}

// Format is a parsed -o. The zero value is the table.
type Format struct {
	name     FormatName
	template *template.Template
	query    *gojq.Code
	ctx      context.Context //nolint:containedctx // of the command, which ends an expression that does not end by itself
	asked    bool            // it was named, and is not the default
}

// maxTemplate bounds a template file, in bytes.
const maxTemplate = 1 << 20

// Name is the word before "=".
func (f Format) Name() FormatName {
	if f.name == "" {
		return Table
	}
	return f.name
}

// Structured says that stdout is one document of the sbx schema with the
// errors inside: json, ndjson and yaml.
func (f Format) Structured() bool {
	return f.name == JSON || f.name == NDJSON || f.name == YAML
}

// Human says that rows are laid out for eyes when stdout is a terminal.
func (f Format) Human() bool { return f.Name() == Table || f.Name() == WideTable }

// laidOutInPipe says that rows are laid out for eyes in a pipe, too: who names the table wants to see
// it, behind a pager or in a file. The default is tab-separated there.
func (f Format) laidOutInPipe() bool { return f.asked && f.name == Table }

// columnLevel is the highest column level that the format shows unasked.
func (f Format) columnLevel() Level {
	switch f.Name() {
	case WideTable, CSV:
		return Wide
	case Table:
		return Default
	default:
		return Extra
	}
}

// FormatOf is the format whose name begins the value of -o, without its argument; an unknown
// name is the table.
func FormatOf(text string) Format {
	word, _, _ := strings.Cut(text, "=")
	if !slices.Contains(Formats(), FormatName(word)) {
		return Format{}
	}
	return Format{name: FormatName(word)}
}

// ParseFormat parses the value of -o; "" is the table. An unknown name, a template or jq
// expression with a mistake and an unreadable template file are fault.KindUsage. ctx bounds
// reading a template file and, later, evaluating an expression; its cause is then the error.
func ParseFormat(ctx context.Context, text string) (Format, error) {
	word, argument, given := strings.Cut(text, "=")
	name := FormatName(word)
	if text == "" {
		name = Table
	}
	if !slices.Contains(Formats(), name) {
		return Format{}, unknownFormat(word)
	}
	if takes := formatPlaceholder(name); takes == "" && given {
		return Format{}, fault.Usage("format %s accepts no value", name)
	} else if takes != "" && argument == "" {
		return Format{}, fault.Usage("format %s needs a value", name).WithHint("write -o %s=%s", name, takes)
	}
	f, err := compileFormat(ctx, name, argument)
	f.asked = text != ""
	return f, err
}

func compileFormat(ctx context.Context, name FormatName, argument string) (Format, error) {
	f := Format{name: name, ctx: ctx}
	var err error
	switch name {
	case Template:
		f.template, err = parseTemplate(argument)
	case TemplateFile:
		var text []byte
		text, err = hostfile.File{Flag: "template file", Path: argument, Limit: maxTemplate, Hint: "name a readable file that holds the template"}.Read(ctx)
		if err != nil {
			return Format{}, err
		}
		f.template, err = parseTemplate(string(text))
	case JQ:
		f.query, err = parseQuery(argument)
	default:
	}
	return f, err
}

// formatPlaceholder is how help writes the value of a format; "" = it takes none.
func formatPlaceholder(name FormatName) string {
	switch name {
	case Template:
		return "STR"
	case TemplateFile:
		return "FILE"
	case JQ:
		return "EXPR"
	default:
		return ""
	}
}

// FormatHelp is the list of formats as help shows it: "table|wide|...|jq=EXPR".
func FormatHelp(names ...FormatName) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
		if takes := formatPlaceholder(name); takes != "" {
			words[i] += "=" + takes
		}
	}
	return strings.Join(words, "|")
}

func unknownFormat(word string) error {
	known := make([]string, 0, len(Formats()))
	for _, name := range Formats() {
		known = append(known, string(name))
	}
	err := fault.Usage("unknown format %q", Escape(word))
	if guess := fault.Nearest(word, known); guess != "" {
		return err.WithHint("did you mean %s? formats: %s", guess, FormatHelp(Formats()...))
	}
	return err.WithHint("formats: %s", FormatHelp(Formats()...))
}

// Allow refuses every format that is not in names, as fault.KindUsage; command
// is how the message calls it ("inspect").
func (f Format) Allow(command string, names ...FormatName) error {
	if slices.Contains(names, f.Name()) {
		return nil
	}
	return fault.Usage("%s has no %s output", command, f.Name()).WithHint("formats: %s", FormatHelp(names...))
}

// Refuse refuses the formats in names, as fault.KindUsage ("logs -f" and json).
func (f Format) Refuse(command string, names ...FormatName) error {
	rest := slices.DeleteFunc(Formats(), func(n FormatName) bool { return slices.Contains(names, n) })
	return f.Allow(command, rest...)
}
