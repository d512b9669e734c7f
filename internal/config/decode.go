package config

import (
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/yamltext"
)

// decoder reads one file. It goes on after a mistake, so that one run shows all
// of them.
type decoder struct {
	types []providers.Type
	doc   *document
	errs  []error
}

// decodeFile reads the content of a file strictly: unknown and repeated keys, wrong
// types and bad values are mistakes. The document beside mistakes holds what
// was understood; it is nil where the content is no YAML.
func decodeFile(path string, content []byte, types []providers.Type) (*document, []error) {
	root, errs := parseYAML(path, content)
	if len(errs) > 0 {
		return nil, errs
	}
	d := &decoder{types: types, doc: newDocument(path)}
	if root != nil {
		d.readTable(root, "the file", d.topReaders())
	}
	return d.doc, d.errs
}

func (d *decoder) addMistake(at *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, mistakeAt(d.doc.path, placeOf(at), format, args...))
}

// pair is one key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// readPairs gives the keys of a mapping, each once and each with a value.
func (d *decoder) readPairs(node *yaml.Node, what string) []pair {
	if node.Kind != yaml.MappingNode {
		d.addMistake(node, "%s must be a mapping of keys to values", what)
		return nil
	}
	var list []pair
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.addMistake(key, "%s has a key that is not a word", what)
		case twice:
			d.addMistake(key, "%s is given twice, first in line %d", quoteKey(key.Value), line)
		default:
			first[key.Value] = key.Line
			list = append(list, pair{key, value})
		}
	}
	return list
}

// reader takes the value of one key.
type reader func(p pair)

func (d *decoder) readTable(node *yaml.Node, what string, readers map[string]reader) {
	for _, p := range d.readPairs(node, what) {
		read, ok := readers[p.key.Value]
		switch {
		case !ok:
			d.reportUnknownKey(p.key, readers)
		case yamltext.IsEmpty(p.value):
			d.addMistake(p.key, "%s has no value; give it one or remove the key", p.key.Value)
		default:
			read(p)
		}
	}
}

func (d *decoder) reportUnknownKey(key *yaml.Node, readers map[string]reader) {
	name := printableKey(key.Value)
	if name != key.Value {
		d.addMistake(key, "unknown key that begins with %s: a colon with a space after it ends a key", quoteKey(name))
		return
	}
	d.addMistake(key, "unknown key %s%s", quoteKey(name), suggestAllowed(name, slices.Collect(maps.Keys(readers))))
}

func (d *decoder) readWords(p pair) []word {
	if p.value.Kind != yaml.SequenceNode {
		d.addMistake(p.value, "%s must be a list, like [one, two]", p.key.Value)
		return nil
	}
	var list []word
	for _, item := range p.value.Content {
		if text, ok := d.readText(item, p.key.Value); ok {
			list = append(list, word{text, placeOf(item)})
		}
	}
	return list
}

// readText reads one word as it is written: `true`, `1.0` and `0123` stay texts.
// The error never quotes it.
func (d *decoder) readText(node *yaml.Node, what string) (string, bool) {
	switch {
	case node.Kind != yaml.ScalarNode || yamltext.IsEmpty(node):
		d.addMistake(node, "%s must be a single word or number here", what)
		return "", false
	}
	if err := checkKind(providers.OptionText, node.Value); err != nil {
		d.addMistake(node, "%s %w", what, err)
		return "", false
	}
	return node.Value, true
}

func quoteKey(text string) string { return `"` + printableKey(text) + `"` }

// document is what one file says, checked by itself: nothing in it has been
// compared with other files, with the environment or with the list of profiles.
type document struct {
	path       string
	scalars    map[string]entry
	places     map[string]position // of scalars
	use        *names              // nil = not in the file
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

// names is a list of profile names.
type names struct {
	words []word
	at    position
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
func (d *document) originAt(at position) string { return d.path + ":" + strconv.Itoa(at.line) }

func (d *document) setValue(key, text string, at position) {
	d.scalars[key] = entry{text: text, origin: d.originAt(at)}
	d.places[key] = at
}

func (d *document) setVariable(key, variable string, at position) {
	d.scalars[key] = entry{variable: variable, origin: d.originAt(at)}
	d.places[key] = at
}

func (d *document) setCommand(key string, command []string, at position) {
	d.scalars[key] = entry{command: command, origin: "command " + command[0] + " by " + d.originAt(at)}
	d.places[key] = at
}

func wordTexts(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

func optionKey(profile, option string) string { return "providers." + profile + "." + option }

// parseYAML gives the root node of a file, nil for an empty one, or every mistake
// that keeps the file from being read as settings.
func parseYAML(path string, content []byte) (*yaml.Node, []error) {
	root, mistakes := yamltext.Parse(content)
	var errs []error
	for _, m := range mistakes {
		errs = append(errs, mistakeAt(path, position{m.Line, m.Column}, "%s", m.Message))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return root, nil
}

func placeOf(node *yaml.Node) position { return position{max(1, node.Line), max(1, node.Column)} }
