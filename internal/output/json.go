package output

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// compact asks appendJSON for one line.
const compact = -1

// appendJSON writes a shaped value. Level is the depth of indentation in steps of two
// spaces, or compact. Unlike encoding/json it keeps key order, escapes no HTML
// and spells every control and format character, so that even JSON is safe to
// look at on a terminal.
func appendJSON(dst []byte, v any, level int) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case string:
		return appendString(dst, v)
	case []any:
		return appendList(dst, v, level)
	case Fields:
		return appendObject(dst, v, level)
	case time.Time:
		if v.IsZero() {
			return append(dst, "null"...)
		}
		return append(v.UTC().AppendFormat(append(dst, '"'), instant), '"')
	case map[string]string:
		return appendTexts(dst, v, level)
	}
	return appendJSON(dst, shapeValue(v), level)
}

// appendFloat writes a number without an exponent below 1e21, as JavaScript does.
func appendFloat(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

func appendList(dst []byte, list []any, level int) []byte {
	if len(list) == 0 {
		return append(dst, "[]"...)
	}
	dst = append(dst, '[')
	for i, v := range list {
		dst = appendSeparator(dst, i, deeperLevel(level))
		dst = appendJSON(dst, v, deeperLevel(level))
	}
	return append(appendNewline(dst, level), ']')
}

func appendObject(dst []byte, fields Fields, level int) []byte {
	if len(fields) == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, '{')
	for i, f := range fields {
		dst = appendSeparator(dst, i, deeperLevel(level))
		dst = appendKey(dst, f.Key, level)
		dst = appendJSON(dst, f.Value, deeperLevel(level))
	}
	return append(appendNewline(dst, level), '}')
}

// appendTexts is appendObject of labels, in the order of their keys.
func appendTexts(dst []byte, texts map[string]string, level int) []byte {
	if len(texts) == 0 {
		return append(dst, "{}"...)
	}
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(texts)) {
		dst = appendSeparator(dst, i, deeperLevel(level))
		dst = appendKey(dst, key, level)
		dst = appendString(dst, texts[key])
	}
	return append(appendNewline(dst, level), '}')
}

func appendKey(dst []byte, key string, level int) []byte {
	dst = append(appendString(dst, key), ':')
	if level != compact {
		dst = append(dst, ' ')
	}
	return dst
}

func deeperLevel(level int) int {
	if level == compact {
		return compact
	}
	return level + 1
}

func appendSeparator(dst []byte, i, level int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return appendNewline(dst, level)
}

func appendNewline(dst []byte, level int) []byte {
	if level == compact {
		return dst
	}
	dst = append(dst, '\n')
	for range level {
		dst = append(dst, "  "...)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		if n := plainPrefix(s[i:]); n > 0 {
			dst = append(dst, s[i:i+n]...)
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == utf8.RuneError && size == 1:
			dst = append(dst, `\ufffd`...)
		case unsafeRune(r):
			dst = appendEscape(dst, r)
		default:
			dst = append(dst, s[i:i+size]...)
		}
		i += size
	}
	return append(dst, '"')
}

// plainPrefix counts the leading bytes that need no second look: printable ASCII but
// for the two that JSON escapes.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

func appendEscape(dst []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\r':
		return append(dst, `\r`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r > 0xffff:
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
	}
	return fmt.Appendf(dst, `\u%04x`, r)
}

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
