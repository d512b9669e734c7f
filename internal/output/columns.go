package output

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Columns are the columns of the documents that are made of items: one for each key of D, a struct
// whose fields have json tags, in their order. The tag `table` says how a table shows a key:
//
//	`json:"memory_mb" table:"MEM LIMIT,wide"`
//
// Before the first comma stands the heading, "" for the key in capitals; the options are wide,
// spare and whole, as the fields of Column. A key without this tag is Extra. Human adds
// what a tag cannot say, by name: Text and Tone.
//
// The document of an item is made once for all of its columns. A key that D lacks in human, and
// an option that does not exist, are mistakes of the program.
func Columns[T, D any](document func(T) D, human ...Column[T]) []Column[T] {
	from := &source{func(item any) reflect.Value { return reflect.ValueOf(document(typed[T](item))) }}
	keys := jsonKeys(reflect.TypeFor[D]())
	columns := make([]Column[T], len(keys))
	for i, k := range keys {
		columns[i] = Column[T]{Name: k.name, Level: Extra, from: from, index: k.index}
		if tag, shown := k.tag.Lookup("table"); shown {
			columns[i].readTag(tag)
		}
	}
	for _, h := range human {
		at := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == h.Name })
		if at < 0 {
			panic(fmt.Sprintf("output: %v has no key %q", reflect.TypeFor[D](), h.Name))
		}
		columns[at].Text, columns[at].Tone = h.Text, h.Tone
	}
	return columns
}

func (c *Column[T]) readTag(tag string) {
	options := strings.Split(tag, ",")
	c.Head, c.Level = options[0], Default
	for _, option := range options[1:] {
		switch option {
		case "wide":
			c.Level = Wide
		case "spare":
			c.Spare = true
		case "whole":
			c.Whole = true
		default:
			panic(fmt.Sprintf("output: no option %q of a table", option))
		}
	}
}

// source makes the document of an item, of which a list has the address.
type source struct{ document func(item any) reflect.Value }

// readValues appends the value of each column of an item to dst. Its document is made once. The
// values are parts of it, not copies, as long as the document cannot be addressed.
func readValues(dst []any, columns []column, item any) []any {
	var made *source
	var document reflect.Value
	for _, c := range columns {
		if c.from == nil {
			dst = append(dst, c.value(item))
			continue
		}
		if c.from != made {
			made, document = c.from, c.from.document(item)
		}
		dst = append(dst, keyValue(document.FieldByIndex(c.index)))
	}
	return dst
}

// keyValue is what the field of a key holds: nil for a nil pointer, else what it points at. A
// word of a closed list that may be missing is a text like others, which a narrow table cuts.
func keyValue(field reflect.Value) any {
	if field.Kind() != reflect.Pointer {
		return field.Interface()
	}
	if field.IsNil() {
		return nil
	}
	if field.Type().Elem().Kind() == reflect.String {
		return field.Elem().String()
	}
	return field.Elem().Interface()
}

// jsonKey is a field of a struct as a key of its object.
type jsonKey struct {
	name     string
	index    []int
	tag      reflect.StructTag
	optional bool // has the option `omitzero`
}

// keysOfTypes are the []jsonKey of each reflect.Type that was asked for: a list asks for those of each row.
var keysOfTypes sync.Map //nolint:gochecknoglobals // what a type has never changes

// jsonKeys are the keys of a struct in the order of its fields; those of an embedded struct are its own. A field
// without a json tag has its name in snake_case. The keys belong to all callers.
func jsonKeys(t reflect.Type) []jsonKey {
	if known, found := keysOfTypes.Load(t); found {
		return known.([]jsonKey) //nolint:forcetypeassert,errcheck // it holds nothing else
	}
	keys := readKeys(t)
	keysOfTypes.Store(t, keys)
	return keys
}

func readKeys(t reflect.Type) []jsonKey {
	var keys []jsonKey
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() || name == "-":
			continue
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			for _, k := range jsonKeys(field.Type) {
				k.index = append(slices.Clone(field.Index), k.index...)
				keys = append(keys, k)
			}
			continue
		case name == "":
			name = snakeCase(field.Name)
		}
		keys = append(keys, jsonKey{name: name, index: field.Index, tag: field.Tag, optional: options == "omitzero"})
	}
	return keys
}
