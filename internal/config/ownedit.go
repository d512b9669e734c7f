package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/yamltext"
)

// setOwned gives the text of a file in which a profile has this rule of ownership. It
// edits the text, so that comments and layout stay, and then reads it: a text that
// does not say exactly that is not given out.
func setOwned(path, content, profile, kind string, owned Owned, types []providers.Type) (string, error) {
	byHand := fault.New(fault.KindRefused, "%s is written in a way that cannot be changed safely", path).
		WithHint("write it by hand into the profile %s: `owned: %s`", profile, owned.asYAML())
	before, errs := decodeFile(path, []byte(content), types)
	root, _ := yamltext.Parse([]byte(content)) // whose mistakes decodeFile gives
	if len(errs) > 0 {
		return "", byHand
	}
	if before == nil {
		before = newDocument(path)
	}
	for _, b := range before.profiles {
		if b.name.text == profile && b.owned != nil && b.owned.String() == owned.String() {
			return content, nil
		}
	}
	e := &editor{lines: splitLines(content)}
	e.setOwned(root, profile, kind, owned.asYAML())
	text := strings.Join(e.lines, "\n") + "\n"
	after, errs := decodeFile(path, []byte(text), types)
	if len(errs) > 0 || after == nil || !sameBut(before, after, profile, owned) {
		return "", byHand
	}
	return text, nil
}

// asYAML writes the rule as a value in a file.
func (o Owned) asYAML() string {
	if o.All {
		return "all"
	}
	pairs := make([]string, 0, len(o.Labels))
	for key, value := range o.Labels {
		pairs = append(pairs, plainOrQuoted(key)+": "+plainOrQuoted(value))
	}
	slices.Sort(pairs)
	return "{labels: {" + strings.Join(pairs, ", ") + "}}"
}

// plainOrQuoted writes a text so that YAML reads the same text.
func plainOrQuoted(text string) string {
	if regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`).MatchString(text) &&
		!slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}

// editor changes a text at the places of its YAML nodes. What it makes is read again
// by its caller, so a form that it does not know costs nothing but a refusal.
type editor struct{ lines []string }

func (e *editor) setOwned(root *yaml.Node, profile, kind, value string) {
	all := valueAt(root, "providers")
	block := valueAt(all, profile)
	rule := valueAt(block, keyOwned)
	entry := plainOrQuoted(profile) + ": {type: " + kind + ", owned: " + value + "}"
	switch {
	case rule != nil:
		e.replaceValue(keyAt(block, keyOwned), rule, value)
	case block != nil && isFlowMapping(block):
		e.insertAt(block, keyOwned+": "+value, len(block.Content) > 0)
	case block != nil:
		first := block.Content[0]
		at := first.Line - 1
		if t := keyAt(block, keyType); t != nil {
			at = t.Line
		}
		e.insertLine(at, indentOf(first)+keyOwned+": "+value)
	case all != nil && isFlowMapping(all):
		e.insertAt(all, entry, len(all.Content) > 0)
	case all != nil:
		in := indentOf(all.Content[0])
		e.insertLine(keyAt(root, "providers").Line, in+plainOrQuoted(profile)+":", in+"  type: "+kind, in+"  owned: "+value)
	case root != nil && isFlowMapping(root):
		e.insertAt(root, "providers: {"+entry+"}", len(root.Content) > 0)
	default:
		e.insertLine(len(e.lines), "providers:", "  "+plainOrQuoted(profile)+":", "    type: "+kind, "    owned: "+value)
	}
}

func isFlowMapping(node *yaml.Node) bool {
	return node.Style&yaml.FlowStyle != 0 || len(node.Content) == 0
}

func indentOf(node *yaml.Node) string { return strings.Repeat(" ", max(0, node.Column-1)) }

func keyAt(mapping *yaml.Node, name string) *yaml.Node {
	key, _ := entryAt(mapping, name)
	return key
}

func valueAt(mapping *yaml.Node, name string) *yaml.Node {
	_, value := entryAt(mapping, name)
	return value
}

func entryAt(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

func (e *editor) insertLine(n int, lines ...string) {
	e.lines = slices.Insert(e.lines, min(n, len(e.lines)), lines...)
}

// insertAt puts a text behind the brace that opens a mapping.
func (e *editor) insertAt(mapping *yaml.Node, text string, more bool) {
	if more {
		text += ", "
	}
	before, after := e.splitLine(mapping)
	if rest, ok := strings.CutPrefix(after, "{"); ok {
		e.lines[mapping.Line-1] = before + "{" + text + rest
	}
}

// splitLine parts the line of a node where it begins. Columns count characters.
func (e *editor) splitLine(node *yaml.Node) (before, after string) {
	line := []rune(e.lines[node.Line-1])
	at := min(node.Column-1, len(line))
	return string(line[:at]), string(line[at:])
}

func (e *editor) replaceValue(key, old *yaml.Node, value string) {
	before, after := e.splitLine(old)
	last := lastLine(old)
	switch {
	case old.Kind == yaml.ScalarNode && old.Style == 0:
		e.lines[old.Line-1] = before + value + strings.TrimPrefix(after, old.Value)
	case old.Kind == yaml.MappingNode && old.Style&yaml.FlowStyle != 0 && last == old.Line:
		if end := flowMappingLength(after); end > 0 {
			e.lines[old.Line-1] = before + value + after[end:]
		}
	case old.Kind == yaml.MappingNode && old.Line > key.Line:
		line, _, _ := strings.Cut(e.lines[key.Line-1], ":")
		e.lines = slices.Replace(e.lines, key.Line-1, last, line+": "+value)
	}
}

// lastLine is the line in which the last part of a node begins.
func lastLine(node *yaml.Node) int {
	last := node.Line
	for _, child := range node.Content {
		last = max(last, lastLine(child))
	}
	return last
}

// flowMappingLength is the length of the mapping in braces that a text begins with; 0 = it does
// not end in it.
func flowMappingLength(text string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
