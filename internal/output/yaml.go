package output

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// appendYAML writes a shaped value as one YAML document.
func appendYAML(dst []byte, v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(yamlNode(v)); err != nil {
		return dst, err
	}
	if err := encoder.Close(); err != nil {
		return dst, err
	}
	return append(dst, spellUnsafe(b.String())...), nil
}

func yamlNode(v any) *yaml.Node {
	switch v := v.(type) {
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	case string:
		return yamlText(v)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, e := range v {
			n.Content = append(n.Content, yamlNode(e))
		}
		return flowIfEmpty(n)
	case Fields:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, f := range v {
			n.Content = append(n.Content, yamlText(f.Key), yamlNode(f.Value))
		}
		return flowIfEmpty(n)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: string(appendJSON(nil, v, compact))}
}

func flowIfEmpty(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// yamlText quotes what holds characters that need an escape, because YAML knows
// escapes in double quotes only.
func yamlText(s string) *yaml.Node {
	s = strings.ToValidUTF8(s, "\ufffd")
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, unsafeRune) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// spellUnsafe escapes the format characters that the YAML library regards as printable. They
// occur inside double quotes only, where \u means the same.
func spellUnsafe(document string) string {
	if !strings.ContainsFunc(document, func(r rune) bool { return r != '\n' && unsafeRune(r) }) {
		return document
	}
	var b strings.Builder
	for _, r := range document {
		if r != '\n' && unsafeRune(r) {
			b.WriteString(escapeRune(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
