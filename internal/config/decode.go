package config

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"sbx/internal/providers"
)

// decoder reads one file. It goes on after a mistake, so that one run shows all
// of them.
type decoder struct {
	types []providers.Type
	known map[string]string // name -> type of the profiles of weaker files
	doc   *document
	errs  []error
}

// decode reads the content of a file strictly: unknown and repeated keys, wrong
// types and bad values are mistakes. The document beside mistakes holds what
// was understood; it is nil where the content is no YAML.
func decode(path string, content []byte, types []providers.Type, known map[string]string) (*document, []error) {
	root, errs := parse(path, content)
	if len(errs) > 0 {
		return nil, errs
	}
	d := &decoder{types: types, known: known, doc: newDocument(path)}
	if root != nil {
		d.table(root, "the file", d.top())
	}
	return d.doc, d.errs
}

func (d *decoder) fail(at *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, mistake(d.doc.path, placeOf(at), format, args...))
}

// pair is one key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs gives the keys of a mapping, each once and each with a value.
func (d *decoder) pairs(node *yaml.Node, what string) []pair {
	if node.Kind != yaml.MappingNode {
		d.fail(node, "%s must be a mapping of keys to values", what)
		return nil
	}
	var list []pair
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, "%s has a key that is not a word", what)
		case twice:
			d.fail(key, "%s is given twice, first in line %d", quoted(key.Value), line)
		default:
			first[key.Value] = key.Line
			list = append(list, pair{key, value})
		}
	}
	return list
}

// reader takes the value of one key.
type reader func(p pair)

// table reads a mapping whose keys are all known.
func (d *decoder) table(node *yaml.Node, what string, readers map[string]reader) {
	for _, p := range d.pairs(node, what) {
		read, ok := readers[p.key.Value]
		switch {
		case !ok:
			d.unknown(p.key, readers)
		case missing(p.value):
			d.fail(p.key, "%s has no value; give it one or remove the key", p.key.Value)
		default:
			read(p)
		}
	}
}

func (d *decoder) unknown(key *yaml.Node, readers map[string]reader) {
	name := shown(key.Value)
	if name != key.Value {
		d.fail(key, "unknown key that begins with %s: a colon with a space after it ends a key", quoted(name))
		return
	}
	d.fail(key, "unknown key %s%s", quoted(name), meant(name, slices.Collect(maps.Keys(readers))))
}

// words reads a list of words.
func (d *decoder) words(p pair) []word {
	if p.value.Kind != yaml.SequenceNode {
		d.fail(p.value, "%s must be a list, like [one, two]", p.key.Value)
		return nil
	}
	var list []word
	for _, item := range p.value.Content {
		if text, ok := d.text(item, p.key.Value); ok {
			list = append(list, word{text, placeOf(item)})
		}
	}
	return list
}

// text reads one word as it is written: `true`, `1.0` and `0123` stay texts.
// The error never quotes it.
func (d *decoder) text(node *yaml.Node, what string) (string, bool) {
	switch {
	case node.Kind != yaml.ScalarNode || missing(node):
		d.fail(node, "%s must be a single word or number here", what)
		return "", false
	}
	if err := check(providers.OptionText, node.Value); err != nil {
		d.fail(node, "%s %w", what, err)
		return "", false
	}
	return node.Value, true
}

func quoted(text string) string { return `"` + shown(text) + `"` }
