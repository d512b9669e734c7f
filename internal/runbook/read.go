package runbook

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// Most that a document may hold.
const (
	MaxFile  = 1 << 20 // bytes
	maxDepth = 20
)

// oldRows is the key that listed requirements before questions, figures and alerts had names.
const oldRows = "rows"

// Parse reads one document strictly. Beside findings the runbook holds what was understood; it is
// nil where the content is no document at all.
func Parse(file string, content []byte) (*Runbook, []Finding) {
	book := &Runbook{Origin: Origin{File: file}}
	r := &reader{source: source{file: file, text: string(content), places: map[string]place{}}}
	if len(content) > MaxFile {
		r.report(place{1, 1, 1, 0}, "larger than 1 MiB", "")
		return nil, r.found
	}
	root, mistakes := yamltext.Parse(content)
	for _, m := range mistakes {
		hint := ""
		if strings.HasPrefix(m.Message, "not valid YAML") {
			hint = "quote a text that holds `: `, ` #`, or inside { } a `?` or `,`; or write one key on each line"
		}
		r.report(place{m.Line, m.Column, 1, 0}, m.Message, hint)
	}
	if root == nil {
		if len(mistakes) == 0 {
			r.report(place{1, 1, 1, 0}, "the document is empty", "`sbx runbook new ID` writes one")
		}
		return nil, r.found
	}
	r.readStruct(root, "", reflect.ValueOf(book).Elem(), 0)
	book.source = r.source
	return book, r.found
}

// reader fills a document from nodes. It goes on after a mistake.
type reader struct {
	source
	found []Finding
}

func (r *reader) report(at place, message, hint string) {
	r.found = append(r.found, r.finding(at, Error, RuleSyntax, message, hint))
}

// reportUnread reports a value that is missing or cannot be read, by its path.
func (r *reader) reportUnread(node *yaml.Node, path, message, hint string) {
	r.report(placeOf(node), message, hint)
	r.unread = append(r.unread, path)
}

// placeOf is where a node stands. A scalar of one line is marked as a whole.
func placeOf(node *yaml.Node) place {
	at := place{line: max(1, node.Line), column: max(1, node.Column), width: 1, style: node.Style}
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(node.Value, "\n") {
		at.width = max(1, len([]rune(node.Value)))
		if node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			at.width += 2
		}
	}
	return at
}

// field is a field of a struct as its tags describe it.
type field struct {
	key      string
	required bool
	words    []string
	index    int
}

func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("key")
		key, option, _ := strings.Cut(tag, ",")
		if !ok || key == "-" {
			continue
		}
		f := field{key: key, required: option == "required", index: i}
		if list := t.Field(i).Tag.Get("words"); list != "" {
			f.words = strings.Split(list, ",")
		}
		all = append(all, f)
	}
	return all
}

// readStruct fills a struct from a mapping: unknown and repeated keys, and keys that are missing,
// are mistakes.
func (r *reader) readStruct(node *yaml.Node, path string, into reflect.Value, depth int) {
	if node.Kind != yaml.MappingNode {
		r.reportUnread(node, path, what(path)+" must be a mapping of keys to values", "")
		return
	}
	if depth > maxDepth {
		r.reportUnread(node, path, "nested too deeply", "")
		return
	}
	fields := fieldsOf(into.Type())
	var keys []string
	for _, f := range fields {
		keys = append(keys, f.key)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		n := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		line, twice := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.reportUnread(key, path, what(path)+" has a key that is not a word", "a `?` at the start of a line begins such a key; quote the text")
			continue
		case twice:
			r.report(placeOf(key), fmt.Sprintf("%q is given twice, first in line %d", key.Value, line), "")
			continue
		case key.Value == oldRows:
			r.found = append(r.found, r.finding(placeOf(key), Warning, RuleOldName, "rows is not read any more: names say what a step answers", "remove rows"))
			continue
		case n < 0:
			r.report(placeOf(key), fmt.Sprintf("unknown key %q", key.Value), fault.Meant(key.Value, keys))
			if meant := fault.Nearest(key.Value, keys); meant != "" {
				r.unread = append(r.unread, join(path, meant))
			}
			continue
		}
		seen[key.Value] = key.Line
		if yamltext.IsEmpty(value) {
			r.reportUnread(key, join(path, key.Value), key.Value+" has no value; give it one or remove the key", "")
			continue
		}
		r.readValue(value, join(path, key.Value), into.Field(fields[n].index), fields[n].words, depth)
	}
	for _, f := range fields {
		if _, ok := seen[f.key]; f.required && !ok {
			r.reportUnread(node, join(path, f.key), what(path)+" has no "+f.key, "")
		}
	}
}

func what(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (r *reader) readValue(node *yaml.Node, path string, into reflect.Value, words []string, depth int) {
	r.places[path] = placeOf(node)
	if node.Kind == yaml.AliasNode { // reported as the text was read
		r.unread = append(r.unread, path)
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		r.readStruct(node, path, into.Elem(), depth+1)
	case reflect.Slice:
		r.readList(node, path, into, words, depth)
	default:
		if into.Kind() == reflect.Struct && into.Type() != reflect.TypeFor[Date]() {
			r.readStruct(node, path, into, depth+1)
			return
		}
		r.readScalar(node, path, into, words)
	}
}

func (r *reader) readList(node *yaml.Node, path string, into reflect.Value, words []string, depth int) {
	if node.Kind != yaml.SequenceNode {
		r.reportUnread(node, path, path+" must be a list", "begin each item with `- ` on a line of its own")
		return
	}
	if len(node.Content) == 0 {
		r.reportUnread(node, path, path+" is an empty list; remove the key", "")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		r.readValue(item, path+"["+strconv.Itoa(i)+"]", list.Index(i), words, depth)
	}
	into.Set(list)
}

// readScalar reads one value. A comment behind an unquoted text has cut it.
func (r *reader) readScalar(node *yaml.Node, path string, into reflect.Value, words []string) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	text := node.Value
	switch {
	case node.Kind != yaml.ScalarNode || yamltext.IsEmpty(node):
		r.reportUnread(node, path, name+" must be a single text", "")
		return
	case strings.TrimSpace(text) == "":
		r.reportUnread(node, path, name+" is empty", "")
		return
	case node.LineComment != "" && node.Style == 0 && isText(into):
		at := placeOf(node)
		r.report(place{at.line, at.column + at.width + 1, len([]rune(node.LineComment)), 0},
			"a blank and # begin a comment here and cut the text", "quote the text, or move the comment to a line of its own")
		r.unread = append(r.unread, path)
		return
	case len(words) > 0 && !slices.Contains(words, text):
		r.reportUnread(node, path, fmt.Sprintf("%s: %q is not known", name, text), fault.Meant(text, words))
		return
	}
	if err := setScalar(into, text); err != nil {
		r.reportUnread(node, path, name+": "+err.Error(), "")
	}
}

// isText says that a field takes running text, in which # is a character like others.
func isText(into reflect.Value) bool {
	return into.Type() == reflect.TypeFor[string]() || into.Type() == reflect.TypeFor[Condition]()
}

func setScalar(into reflect.Value, text string) error {
	switch into.Interface().(type) {
	case string, Condition:
		into.SetString(strings.TrimSpace(text))
	case Word:
		if strings.ContainsAny(text, " \t\n") {
			return errors.New("must be one word")
		}
		into.SetString(text)
	case time.Duration:
		d, err := sandbox.ParseDuration(text)
		if err != nil {
			return err
		}
		into.SetInt(int64(d))
	case Date:
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return fmt.Errorf("%q is not a day like 2026-11-23", text)
		}
		into.Set(reflect.ValueOf(Date(day)))
	case bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		into.SetBool(text == "true")
	default:
		return errors.New("cannot hold a text")
	}
	return nil
}
