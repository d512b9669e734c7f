package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// decoder reads one file. It goes on after a mistake, so that one run shows all
// of them.
type decoder struct {
	*yamltext.Reader
	types []providers.Type
	doc   *document
	hint  string
	errs  []error // beside those of the reader
}

// decodeFile reads the content of a file strictly: unknown and repeated keys, wrong
// types and bad values are mistakes. The document beside mistakes holds what
// was understood; it is nil where the content is no YAML.
func decodeFile(path string, content []byte, types []providers.Type) (*document, []error) {
	r, root, some := yamltext.Read(content)
	d := &decoder{Reader: r, types: types, doc: newDocument(path), hint: hintFile}
	if len(r.Mistakes) > 0 {
		return nil, d.errors()
	}
	if some {
		d.readTable(root, "the file", d.topReaders())
	}
	return d.doc, d.errors()
}

// errors are all mistakes as errors.
func (d *decoder) errors() []error {
	errs := d.errs
	for _, m := range d.Mistakes {
		if len(m.Allowed) > 0 {
			m.Message += suggestAllowed(m.Word, m.Allowed)
		}
		errs = append(errs, fault.Usage("%w", &placedError{d.doc.path, m.Place, errors.New(m.Message)}).WithHint("%s", d.hint))
	}
	return errs
}

// value is a value of a file with its key.
type value = yamltext.Value

// readers are what takes the values of a table, by their keys. A key with a dot belongs to a table in it.
type readers map[string]func(value)

func (d *decoder) readTable(v value, what string, all readers) {
	var rows []yamltext.Row
	inner := map[string]readers{}
	for key, read := range all {
		table, rest, nested := strings.Cut(key, ".")
		switch {
		case !nested:
			rows = append(rows, yamltext.Row{Key: key, Read: read})
			continue
		case inner[table] == nil:
			inner[table] = readers{}
			rows = append(rows, yamltext.Row{Key: table, Read: func(v value) { d.readTable(v, v.Path, inner[table]) }})
		}
		inner[table][rest] = read
	}
	d.Table(v, what, rows)
}

// setting reads one word into a setting. No check quotes what may be a secret.
func (d *decoder) setting(key string, check func(text string) error) func(value) {
	return func(v value) {
		text, ok := d.readText(v, v.Name())
		if !ok {
			return
		}
		if err := check(text); err != nil {
			d.Refuse(v.At(), "%s: %w", v.Name(), err)
			return
		}
		d.doc.setValue(key, text, v.At())
	}
}

// ofKind checks a setting by its kind.
func ofKind(kind providers.OptionKind) func(text string) error {
	return func(text string) error { return checkKind(kind, text) }
}

func (d *decoder) readWords(v value) []word {
	var list []word
	for _, item := range d.Items(v, v.Name()) {
		if text, ok := d.readText(item, v.Name()); ok {
			list = append(list, word{text, item.At()})
		}
	}
	return list
}

// oneOrMore reads a word or a list of words.
func (d *decoder) oneOrMore(v value) []word {
	if v.Node.Kind != yaml.ScalarNode {
		return d.readWords(v)
	}
	if text, ok := d.readText(v, v.Name()); ok {
		return []word{{text, v.At()}}
	}
	return nil
}

// readText reads one word as it is written. The error never quotes it.
func (d *decoder) readText(v value, what string) (string, bool) {
	text, ok := d.Text(v, what)
	if !ok {
		return "", false
	}
	if err := checkKind(providers.OptionText, text); err != nil {
		d.Refuse(v.At(), "%s %w", what, err)
		return "", false
	}
	return text, true
}

// document is what one file says, checked by itself: nothing in it has been
// compared with other files, with the environment or with the list of profiles.
type document struct {
	path       string
	scalars    map[string]entry
	places     map[string]position // of values
	use        []word              // nil = not in the file
	production []word
	labels     []placed[Label]
	ids        []placed[sandbox.Ref]
	scopes     []scope // of thresholds
	profiles   []block
	named      []string // the names of all profiles, also of broken ones
}

// word is one text with its place.
type word struct {
	text string
	at   position
}

type placed[T any] struct {
	value T
	at    position
}

// values are the values of a list, without their places.
func values[T any](list []placed[T]) []T {
	var all []T
	for _, p := range list {
		all = append(all, p.value)
	}
	return all
}

// block is one profile as a file writes it; its options are among the scalars.
type block struct {
	name  word
	kind  string
	owned *Owned
	at    position // of owned
}

func newDocument(path string) *document {
	return &document{path: path, scalars: map[string]entry{}, places: map[string]position{}}
}

// block finds a profile by its name.
func (d *document) block(profile string) (block, bool) {
	i := slices.IndexFunc(d.profiles, func(b block) bool { return b.name.text == profile })
	if i < 0 {
		return block{}, false
	}
	return d.profiles[i], true
}

// originAt names a place of the file as `config explain` shows it.
func (d *document) originAt(at position) string { return d.path + ":" + strconv.Itoa(at.Line) }

func (d *document) setValue(key, text string, at position) {
	d.scalars[key] = entry{text: text, origin: d.originAt(at)}
	d.places[key] = at
}

func (d *document) setVariable(key, variable string, at position) {
	d.scalars[key] = entry{variable: variable, origin: d.originAt(at)}
}

func (d *document) setCommand(key string, command []string, at position) {
	d.scalars[key] = entry{command: command, origin: "command " + command[0] + " by " + d.originAt(at)}
}

func wordTexts(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

func optionKey(profile, option string) string { return "providers." + profile + "." + option }
