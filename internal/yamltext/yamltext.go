// Package yamltext reads YAML that people write for sbx, strictly: one document without the features that
// surprise (tabs, tags, anchors, aliases), into structs by their tags or into tables of keys that are known
// only at run time, with the place of every mistake.
package yamltext

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Place is where a value stands in a text; line and column begin at 1, and count characters as the width does.
type Place struct {
	Line, Column, Width int
	Style               yaml.Style
}

// Mistake is what is wrong at one place of a text.
type Mistake struct {
	Place
	Message string // one line
	Hint    string // "" = the message says all
	Word    string // of a word that is none of Allowed
	Allowed []string
}

// PlaceOf is where a node stands. A scalar of one line is marked as a whole.
func PlaceOf(node *yaml.Node) Place {
	at := Place{Line: max(1, node.Line), Column: max(1, node.Column), Width: 1, Style: node.Style}
	if node.Kind == yaml.ScalarNode && node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && !strings.Contains(node.Value, "\n") {
		at.Width = max(1, len([]rune(node.Value)))
		if node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			at.Width += 2
		}
	}
	return at
}

// Parse gives the root node of a text, nil for one that is empty or no YAML, and every mistake. A text
// with mistakes is not to be used: its root is for a reader that reports further ones.
func Parse(content []byte) (*yaml.Node, []Mistake) {
	if found := findTabs(content); len(found) > 0 {
		return nil, found
	}
	var doc, more yaml.Node
	stream := yaml.NewDecoder(bytes.NewReader(content))
	switch err := stream.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, []Mistake{mistakeOf(content, err)}
	}
	var found []Mistake
	switch err := stream.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		found = append(found, mistakeOf(content, err))
	default:
		found = append(found, mistakeAt(&more, "a second document begins here; only one is read"))
	}
	found = append(found, refuseAnchorsAndTags(&doc)...)
	if len(doc.Content) == 0 || IsEmpty(doc.Content[0]) {
		return nil, found
	}
	return doc.Content[0], found
}

// IsEmpty says that a key has no value: nothing, ~ or null, unquoted.
func IsEmpty(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func mistakeAt(node *yaml.Node, message string) Mistake {
	return Mistake{Place: Place{Line: max(1, node.Line), Column: max(1, node.Column), Width: 1}, Message: message}
}

// findTabs finds tabs in front of text. YAML takes some of them and not others; here none is
// taken, because nobody sees the difference.
func findTabs(content []byte) []Mistake {
	var found []Mistake
	line := 0
	for text := range bytes.Lines(content) {
		line++
		rest := bytes.TrimLeft(text, " \t")
		column := bytes.IndexByte(text[:len(text)-len(rest)], '\t') + 1
		if column > 0 && len(bytes.TrimSpace(rest)) > 0 && rest[0] != '#' {
			found = append(found, Mistake{Place: Place{Line: line, Column: column, Width: 1}, Message: "indented with a tab; use spaces"})
		}
	}
	return found
}

// refuseAnchorsAndTags refuses anchors, aliases and tags: no text here needs one, and nested
// aliases can unfold to any size.
func refuseAnchorsAndTags(node *yaml.Node) []Mistake {
	var found []Mistake
	switch {
	case node.Kind == yaml.AliasNode:
		found = append(found, mistakeAt(node, "aliases are not accepted; quote a text that begins with *"))
	case node.Anchor != "":
		found = append(found, mistakeAt(node, "anchors are not accepted; quote a text that begins with &"))
	}
	if node.Style&yaml.TaggedStyle != 0 {
		found = append(found, mistakeAt(node, "tags are not accepted; quote a text that begins with !"))
	}
	for _, child := range node.Content {
		found = append(found, refuseAnchorsAndTags(child)...)
	}
	return found
}

const hintYAML = "quote a text that holds `: `, ` #`, or inside { } a `?` or `,`; or write one key on each line"

// mistakeOf turns an error of the parser into a mistake. The parser knows the line at best; the
// column is where the line's text begins.
func mistakeOf(content []byte, err error) Mistake {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	m := Mistake{Place: Place{Line: 1, Column: 1, Width: 1}, Hint: hintYAML}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, after, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			m.Line, text = n, after
		}
		if isParserError(text) {
			m.Line++ // the library counts these from 0
		}
	}
	if lines := bytes.Split(content, []byte("\n")); m.Line <= len(lines) {
		line := lines[m.Line-1]
		m.Column += len(line) - len(bytes.TrimLeft(line, " "))
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		m.Line, m.Column = placeOfText(content, "*"+name)
		text = "an alias names no anchor; quote a text that begins with *"
	}
	m.Message = "not valid YAML: " + strings.ReplaceAll(text, "\n", " ")
	return m
}

// isParserError tells errors of the library's parser from those of its scanner.
func isParserError(text string) bool {
	missing, ok := strings.CutPrefix(text, "did not find expected ")
	return ok && slices.Contains([]string{"',' or '}'", "',' or ']'", "'-' indicator", "key"}, missing)
}

// placeOfText finds a text where the parser does not say its place.
func placeOfText(content []byte, text string) (line, column int) {
	i := max(0, bytes.Index(content, []byte(text)))
	before := content[:i]
	return 1 + bytes.Count(before, []byte("\n")), i - bytes.LastIndexByte(before, '\n')
}
