package config

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML gives the root node of a file, nil for an empty one, or every mistake
// that keeps the file from being read as settings.
func parseYAML(path string, content []byte) (*yaml.Node, []error) {
	if errs := findTabs(path, content); len(errs) > 0 {
		return nil, errs
	}
	var doc, more yaml.Node
	stream := yaml.NewDecoder(bytes.NewReader(content))
	switch err := stream.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, []error{asMistake(path, content, err)}
	}
	var errs []error
	switch err := stream.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		errs = append(errs, asMistake(path, content, err))
	default:
		errs = append(errs, mistakeAt(path, placeOf(&more), "a second document begins here; only one is read"))
	}
	errs = append(errs, refuseAnchorsAndTags(path, &doc)...)
	if len(errs) > 0 || len(doc.Content) == 0 || hasNoValue(doc.Content[0]) {
		return nil, errs
	}
	return doc.Content[0], errs
}

// findTabs finds tabs in front of settings. YAML takes some of them and not others;
// here none is taken, because nobody sees the difference.
func findTabs(path string, content []byte) []error {
	var errs []error
	line := 0
	for text := range bytes.Lines(content) {
		line++
		rest := bytes.TrimLeft(text, " \t")
		column := bytes.IndexByte(text[:len(text)-len(rest)], '\t') + 1
		if column > 0 && len(bytes.TrimSpace(rest)) > 0 && rest[0] != '#' {
			errs = append(errs, mistakeAt(path, position{line, column}, "indented with a tab; use spaces"))
		}
	}
	return errs
}

// refuseAnchorsAndTags refuses anchors, aliases and tags: a file of settings needs none, and
// nested aliases can unfold to any size.
func refuseAnchorsAndTags(path string, node *yaml.Node) []error {
	var errs []error
	switch {
	case node.Kind == yaml.AliasNode:
		errs = append(errs, mistakeAt(path, placeOf(node), "aliases are not accepted; quote a text that begins with *"))
	case node.Anchor != "":
		errs = append(errs, mistakeAt(path, placeOf(node), "anchors are not accepted; quote a text that begins with &"))
	}
	if node.Style&yaml.TaggedStyle != 0 {
		errs = append(errs, mistakeAt(path, placeOf(node), "tags are not accepted; quote a text that begins with !"))
	}
	for _, child := range node.Content {
		errs = append(errs, refuseAnchorsAndTags(path, child)...)
	}
	return errs
}

// asMistake turns an error of the YAML parser into a mistake. The parser knows
// the line at best; the column is where the line's text begins.
func asMistake(path string, content []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := position{1, 1}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			at.line, text = n, after
		}
	}
	if lines := bytes.Split(content, []byte("\n")); at.line <= len(lines) {
		line := lines[at.line-1]
		at.column += len(line) - len(bytes.TrimLeft(line, " "))
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		at, text = placeOfText(content, "*"+name), "an alias names no anchor; quote a text that begins with *" // without the name, which may be a secret
	}
	return mistakeAt(path, at, "not valid YAML: %s", strings.ReplaceAll(text, "\n", " "))
}

// placeOfText finds a text where the parser does not say its place.
func placeOfText(content []byte, text string) position {
	i := max(0, bytes.Index(content, []byte(text)))
	before := content[:i]
	return position{1 + bytes.Count(before, []byte("\n")), i - bytes.LastIndexByte(before, '\n')}
}

func placeOf(node *yaml.Node) position { return position{max(1, node.Line), max(1, node.Column)} }

// hasNoValue says that a key has no value: nothing, ~ or null, unquoted.
func hasNoValue(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}
