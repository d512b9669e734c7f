package yamltext

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Reader reads the values of one text strictly. It goes on after a mistake, so that one look shows all
// of them. No mistake shows a value, but those about a duration, a day, a switch and a word of a closed list.
type Reader struct {
	Mistakes []Mistake
	Places   map[string]Place // of the values that Struct has read, by their paths: spec.steps[0].check
	Unread   []string         // the paths of values that are missing or could not be read
}

// Value is a value of a text.
type Value struct {
	Node *yaml.Node
	Key  *yaml.Node // nil = it is no value of a mapping
	Path string     // "" = the whole text
}

// Name is the key of a value, else the last part of its path.
func (v Value) Name() string {
	if v.Key != nil {
		return v.Key.Value
	}
	return v.Path[strings.LastIndexByte(v.Path, '.')+1:]
}

// At is where the value stands.
func (v Value) At() Place { return PlaceOf(v.Node) }

// KeyAt is where its key stands.
func (v Value) KeyAt() Place { return PlaceOf(v.Key) }

// Row is a key of a table, with what reads its value.
type Row struct {
	Key      string
	Required bool
	Read     func(Value)
}

// Read parses a text for a reader, whose first mistakes are those of Parse. It reports false where the text
// is empty or no YAML.
func Read(content []byte) (*Reader, Value, bool) {
	root, mistakes := Parse(content)
	return &Reader{Mistakes: mistakes, Places: map[string]Place{}}, Value{Node: root}, root != nil
}

// Refuse adds a mistake.
func (r *Reader) Refuse(at Place, format string, args ...any) {
	r.Mistakes = append(r.Mistakes, Mistake{Place: at, Message: fmt.Errorf(format, args...).Error()})
}

// RefuseWord is Refuse with the words that are allowed instead of this one.
func (r *Reader) RefuseWord(at Place, word string, allowed []string, format string, args ...any) {
	r.Refuse(at, format, args...)
	last := &r.Mistakes[len(r.Mistakes)-1]
	last.Word, last.Allowed = word, allowed
}

// refuseValue is Refuse for a value that could not be read.
func (r *Reader) refuseValue(at Place, path, hint, format string, args ...any) {
	r.Refuse(at, format, args...)
	r.Mistakes[len(r.Mistakes)-1].Hint = hint
	r.Unread = append(r.Unread, path)
}

// Pairs gives the values of a mapping, each key once. What is how a mistake calls the mapping.
func (r *Reader) Pairs(v Value, what string) []Value {
	if v.Node.Kind != yaml.MappingNode {
		r.refuseValue(v.At(), v.Path, "", "%s must be a mapping of keys to values", what)
		return nil
	}
	var list []Value
	first := map[string]int{}
	for i := 0; i+1 < len(v.Node.Content); i += 2 {
		key, value := v.Node.Content[i], v.Node.Content[i+1]
		line, twice := first[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.refuseValue(PlaceOf(key), v.Path, "a `?` at the start of a line begins such a key; quote the text", "%s has a key that is not a word", what)
		case twice:
			r.Refuse(PlaceOf(key), "%s is given twice, first in line %d", QuoteKey(key.Value), line)
		default:
			first[key.Value] = key.Line
			list = append(list, Value{Node: value, Key: key, Path: joinPath(v.Path, key.Value)})
		}
	}
	return list
}

// Table reads a mapping that has no keys but those of the rows, each with a value. It gives the unknown ones.
func (r *Reader) Table(v Value, what string, rows []Row) (unknown []string) {
	var given []string
	for _, p := range r.Pairs(v, what) {
		i := slices.IndexFunc(rows, func(row Row) bool { return row.Key == p.Name() })
		switch {
		case i < 0:
			r.refuseKey(p, rows)
			unknown = append(unknown, p.Name())
			continue
		case IsEmpty(p.Node):
			r.refuseValue(p.KeyAt(), p.Path, "", "%s has no value; give it one or remove the key", p.Name())
		default:
			rows[i].Read(p)
		}
		given = append(given, p.Name())
	}
	for _, row := range rows {
		if row.Required && v.Node.Kind == yaml.MappingNode && !slices.Contains(given, row.Key) {
			r.refuseValue(v.At(), joinPath(v.Path, row.Key), "", "%s has no %s", what, row.Key)
		}
	}
	return unknown
}

func (r *Reader) refuseKey(p Value, rows []Row) {
	name := PrintableKey(p.Name())
	switch {
	case p.Name() == "<<":
		r.Refuse(p.KeyAt(), "merge keys are not accepted; write the keys themselves")
		return
	case strings.HasPrefix(p.Name(), name+":"):
		r.Refuse(p.KeyAt(), "unknown key that begins with %s: a colon with a space after it ends a key", QuoteKey(name))
		return
	}
	var keys []string
	for _, row := range rows {
		keys = append(keys, row.Key)
	}
	if name != p.Name() {
		r.RefuseWord(p.KeyAt(), name, keys, "unknown key that begins with %s", QuoteKey(name))
		return
	}
	r.RefuseWord(p.KeyAt(), name, keys, "unknown key %s", QuoteKey(name))
}

const (
	mustBeWord = " must be a single word or number here"
	mustBeList = " must be a list"
	likeWords  = ", like [one, two]"
)

// Items gives the values of a list of words.
func (r *Reader) Items(v Value, what string) []Value { return r.items(v, what+mustBeList+likeWords) }

func (r *Reader) items(v Value, mistake string) []Value {
	if v.Node.Kind != yaml.SequenceNode {
		r.refuseValue(v.At(), v.Path, "begin each item with `- ` on a line of its own", "%s", mistake)
		return nil
	}
	list := make([]Value, len(v.Node.Content))
	for i, item := range v.Node.Content {
		list[i] = Value{Node: item, Path: v.Path + "[" + strconv.Itoa(i) + "]"}
	}
	return list
}

// Text reads one word as it is written: `true`, `1.0` and `0123` stay texts.
func (r *Reader) Text(v Value, what string) (string, bool) {
	return r.text(v, what+mustBeWord)
}

func (r *Reader) text(v Value, mistake string) (string, bool) {
	if v.Node.Kind != yaml.ScalarNode || IsEmpty(v.Node) {
		r.refuseValue(v.At(), v.Path, "", "%s", mistake)
		return "", false
	}
	return v.Node.Value, true
}

// Field is a field of a struct that Struct reads, as its tags describe it: `key:"NAME,required"` and
// `words:"ONE,TWO"`.
type Field struct {
	Key      string
	Required bool
	Words    []string // all that it takes; nil = any
	Index    int
}

// FieldsOf are the fields of a struct that Struct reads.
func FieldsOf(t reflect.Type) []Field {
	var all []Field
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("key")
		key, option, _ := strings.Cut(tag, ",")
		if !ok || key == "-" {
			continue
		}
		f := Field{Key: key, Required: option == "required", Index: i}
		if list := t.Field(i).Tag.Get("words"); list != "" {
			f.Words = strings.Split(list, ",")
		}
		all = append(all, f)
	}
	return all
}

// textReader is a type of a field that reads its own text.
type textReader interface{ ReadText(text string) error }

// Struct fills the struct that into points to by the tags of its fields. A field is a struct, a pointer to
// one, a list, a duration, a switch, a type with ReadText, or running text: a string, in which a comment is a mistake.
func (r *Reader) Struct(v Value, into any) { r.readStruct(v, reflect.ValueOf(into).Elem()) }

// readStruct counts what an unknown key may have been meant for as unread.
func (r *Reader) readStruct(v Value, into reflect.Value) {
	var rows []Row
	var keys []string
	for _, f := range FieldsOf(into.Type()) {
		keys = append(keys, f.Key)
		rows = append(rows, Row{f.Key, f.Required, func(v Value) { r.readField(v, into.Field(f.Index), f.Words) }})
	}
	for _, key := range r.Table(v, cmp.Or(v.Path, "the document"), rows) {
		if meant := fault.Nearest(key, keys); meant != "" {
			r.Unread = append(r.Unread, joinPath(v.Path, meant))
		}
	}
}

func (r *Reader) readField(v Value, into reflect.Value, words []string) {
	r.Places[v.Path] = v.At()
	_, text := reflect.TypeAssert[textReader](into.Addr())
	switch {
	case v.Node.Kind == yaml.AliasNode: // reported as the text was parsed
		r.Unread = append(r.Unread, v.Path)
	case into.Kind() == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		r.readStruct(v, into.Elem())
	case into.Kind() == reflect.Struct && !text:
		r.readStruct(v, into)
	case into.Kind() == reflect.Slice:
		like := likeWords
		if into.Type().Elem().Kind() == reflect.Struct {
			like = ""
		}
		items := r.items(v, v.Path+mustBeList+like)
		if items != nil && len(items) == 0 {
			r.refuseValue(v.At(), v.Path, "", "%s is an empty list; remove the key", v.Path)
			return
		}
		into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
		for i, item := range items {
			r.readField(item, into.Index(i), words)
		}
	default:
		r.readScalar(v, into, words)
	}
}

// readScalar reads one value. A comment behind an unquoted running text has cut it.
func (r *Reader) readScalar(v Value, into reflect.Value, words []string) {
	at := v.At()
	own, isOwn := reflect.TypeAssert[textReader](into.Addr())
	running, what := into.Kind() == reflect.String && !isOwn, mustBeWord
	if running {
		what = " must be a single text"
	}
	text, ok := r.text(v, v.Name()+what)
	switch {
	case !ok:
		return
	case strings.TrimSpace(text) == "":
		r.refuseValue(v.At(), v.Path, "", "%s is empty", v.Name())
		return
	case v.Node.LineComment != "" && at.Style == 0 && running:
		comment := Place{Line: at.Line, Column: at.Column + at.Width + 1, Width: len([]rune(v.Node.LineComment))}
		r.refuseValue(comment, v.Path, "quote the text, or move the comment to a line of its own", "a blank and # begin a comment here and cut the text")
		return
	case len(words) > 0 && !slices.Contains(words, text):
		r.RefuseWord(v.At(), text, words, "%s: %q is not known", v.Name(), text)
		r.Unread = append(r.Unread, v.Path)
		return
	}
	var err error
	switch {
	case isOwn:
		err = own.ReadText(text)
	case into.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		d, err = sandbox.ParseDuration(text)
		into.SetInt(int64(d))
	case into.Kind() == reflect.Bool:
		if into.SetBool(text == "true"); text != "true" && text != "false" {
			err = fmt.Errorf("%q is neither true nor false", text)
		}
	default:
		into.SetString(strings.TrimSpace(text))
	}
	if err != nil {
		r.refuseValue(v.At(), v.Path, "", "%s: %w", v.Name(), err)
	}
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// QuoteKey quotes a key as PrintableKey shows it.
func QuoteKey(text string) string { return `"` + PrintableKey(text) + `"` }

// PrintableKey gives the part of a misplaced key that may be printed: up to the first
// character that no key has. In `{token:s3cret}` the whole text is one key, and
// what follows the colon is a secret.
func PrintableKey(key string) string {
	const longest = 40
	end := strings.IndexFunc(key, func(r rune) bool { return !keyRune(r) })
	if end < 0 {
		end = len(key)
	}
	return key[:min(end, longest)]
}

func keyRune(r rune) bool {
	return r == '_' || r == '-' || r == '.' || r == '/' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
