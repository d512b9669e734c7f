package agentlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sbx/internal/jsontext"
)

// fields are the members of an object, of which each may be of any type.
type fields []jsontext.Member

// object reads an object; nil for any other value.
func object(raw json.RawMessage) fields {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	f, err := jsontext.Members(make(fields, 0, 8), raw)
	if err != nil {
		return nil
	}
	return f
}

// value is the value of the last member with a key; nil = there is none.
func (f fields) value(key string) json.RawMessage {
	for _, member := range slices.Backward(f) {
		if member.Key == key {
			return member.Value
		}
	}
	return nil
}

// first is the first of the keys that has a value; nil = none has.
func (f fields) first(keys ...string) json.RawMessage {
	for _, key := range keys {
		if raw := f.value(key); len(raw) > 0 && string(raw) != "null" {
			return raw
		}
	}
	return nil
}

// text is the text of the first of the keys that has one: a string, or a number or bool as it is written.
func (f fields) text(keys ...string) string {
	for _, key := range keys {
		if text := scalar(f.value(key)); text != "" {
			return text
		}
	}
	return ""
}

// scalar is the text of a string, number or bool; "" for any other value.
func scalar(raw json.RawMessage) string {
	switch {
	case len(raw) == 0 || raw[0] == '{' || raw[0] == '[' || raw[0] == 'n':
		return ""
	case raw[0] != '"':
		return string(raw)
	}
	if plain := raw[1 : len(raw)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain)
	}
	var text string
	if jsontext.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// id is the text of the id; "" = it has none. A switch and 0 are what a writer without ids fills in.
func (f fields) id() string {
	switch raw := f.value("id"); string(raw) {
	case "true", "false", "0", `"0"`:
		return ""
	default:
		return scalar(raw)
	}
}

// number is an integer, also one that is written as a string or with a fraction of zero.
func (f fields) number(key string) *int64 {
	text := scalar(f.value(key))
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == float64(int64(n)) {
		return new(int64(n))
	}
	return nil
}

// decimal is a number.
func (f fields) decimal(key string) *float64 {
	if n, err := strconv.ParseFloat(scalar(f.value(key)), 64); err == nil {
		return &n
	}
	return nil
}

// boolean is a bool, also one that is written as a string.
func (f fields) boolean(key string) *bool {
	switch strings.ToLower(scalar(f.value(key))) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	return nil
}

// moment is a time: a text, or the seconds, milliseconds, microseconds or nanoseconds since 1970.
func (f fields) moment(key string) time.Time {
	text := scalar(f.value(key))
	if at, ok := ParseTime(text); ok {
		return at
	}
	const first = 1e11 // as seconds it would be in the year 5138, as milliseconds it is in 1973
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	for scale := 1e6; scale >= 1e-3; scale /= 1e3 {
		if n < first*1e6/scale {
			return time.UnixMicro(int64(n * scale)).UTC()
		}
	}
	return time.Time{}
}

// textOf is the text inside any value: of an object that of its first known member, of a list that of
// its first element with a text.
func textOf(raw json.RawMessage) string { return textWithin(raw, 0) }

const maxDepth = 4

// elements are the values of a list; none for any other value.
func elements(raw json.RawMessage) [][]byte {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	list, err := jsontext.Elements(nil, raw)
	if err != nil {
		return nil
	}
	return list
}

func textWithin(raw json.RawMessage, depth int) string {
	switch {
	case len(raw) == 0 || depth > maxDepth:
		return ""
	case raw[0] == '[':
		for _, element := range elements(raw) {
			if text := textWithin(element, depth+1); strings.TrimSpace(text) != "" {
				return text
			}
		}
		return ""
	case raw[0] == '{':
		f := object(raw)
		for _, key := range []string{"stdout", "output", "text", "content", "result", "error", "message", "stderr", "file"} {
			if text := textWithin(f.value(key), depth+1); strings.TrimSpace(text) != "" {
				return text
			}
		}
		return ""
	}
	return scalar(raw)
}

// anyText is the text of the first member, by name, that is a string.
func (f fields) anyText() string {
	sorted := slices.SortedStableFunc(slices.Values(f), func(a, b jsontext.Member) int { return cmp.Compare(a.Key, b.Key) })
	for _, member := range sorted {
		if text := scalar(f.value(member.Key)); text != "" && f.value(member.Key)[0] == '"' {
			return text
		}
	}
	return ""
}

// maxText is how many characters of a text an event keeps.
const maxText = 160

// clip is a text in one line of at most maxText characters; what is left out is marked.
func clip(text string) string {
	const enough = maxText * 8 // bytes that may be needed, blanks included
	cut := len(text) > enough
	if cut {
		text = strings.ToValidUTF8(text[:enough], "")
	}
	text = strings.Join(strings.Fields(text), " ")
	runes := 0
	for i := range text {
		if runes++; runes > maxText {
			return text[:i] + "..."
		}
	}
	if cut {
		text += "..."
	}
	return text
}

// firstLine is the first line of a text that is not blank.
func firstLine(text string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = clip(line)
	if more && strings.TrimSpace(rest) != "" && !strings.HasSuffix(line, "...") {
		line += " ..."
	}
	return line
}
