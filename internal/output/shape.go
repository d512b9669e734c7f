package output

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"sbx/internal/sandbox"
)

// Field is one key of an ordered object.
type Field struct {
	Key   string // snake_case
	Value any
}

// Fields is an object whose keys keep their order in every format.
type Fields []Field

// Ordered is an object with values of one type whose keys keep their order.
type Ordered[V any] Fields

func (o Ordered[V]) fields() Fields { return Fields(o) }

// Elem is the type of the values.
func (Ordered[V]) Elem() reflect.Type { return reflect.TypeFor[V]() }

// Seconds gives a duration as seconds, rounded to the millisecond, for a
// `*_seconds` key.
func Seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

// Mebibytes is an amount in MiB, to a tenth, for a `*_mb` key: an integer where it is whole.
type Mebibytes float64

// MiB gives a count of bytes in MiB, rounded to a tenth; nil stays unknown.
func MiB(bytes *int64) *Mebibytes {
	if bytes == nil {
		return nil
	}
	return new(Mebibytes(math.Round(float64(*bytes)/sandbox.MiB*10) / 10))
}

// Time gives an instant for a `*_at` key: RFC 3339, UTC, to the millisecond.
// The zero time means unknown.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func formatInstant(t time.Time) string { return t.UTC().Format(instant) }

// instant is RFC 3339 with milliseconds.
const instant = "2006-01-02T15:04:05.999Z07:00"

// shapeValue reduces a value to what JSON knows: nil, bool, int64, uint64, float64,
// string, []any and Fields. Nil pointers, zero times and numbers that are not
// finite become nil; nil maps and slices become empty ones.
func shapeValue(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return v
	case bool:
		return v
	case int:
		return int64(v)
	case int64:
		return v
	case float64:
		return finiteFloat(v)
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return formatInstant(v)
	case time.Duration:
		return Seconds(v)
	case Mebibytes:
		if v == Mebibytes(int64(v)) {
			return int64(v)
		}
		return float64(v)
	case sandbox.Ref:
		return v.String()
	case Fields:
		return shapeFields(v)
	case map[string]string:
		return shapeTexts(v)
	case error:
		return v.Error()
	}
	return shapeReflected(reflect.ValueOf(v))
}

func finiteFloat(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}

func shapeFields(fields Fields) Fields {
	out := make(Fields, len(fields))
	for i, f := range fields {
		out[i] = Field{f.Key, shapeValue(f.Value)}
	}
	return out
}

func shapeReflected(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return shapeValue(v.Elem().Interface())
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Float32, reflect.Float64:
		return finiteFloat(v.Float())
	default:
		return shapeComposite(v)
	}
}

func shapeTexts(m map[string]string) Fields {
	out := make(Fields, 0, len(m))
	for key, text := range m {
		out = append(out, Field{key, text})
	}
	slices.SortFunc(out, func(a, b Field) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func shapeComposite(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Slice, reflect.Array:
		if o, ok := reflect.TypeAssert[interface{ fields() Fields }](v); ok {
			return shapeFields(o.fields())
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = shapeValue(v.Index(i).Interface())
		}
		return out
	case reflect.Map:
		return shapeMap(v)
	case reflect.Struct:
		if m, ok := reflect.TypeAssert[json.Marshaler](v); ok {
			return shapeMarshaled(m)
		}
		if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			text, _ := m.MarshalText()
			return string(text)
		}
		return shapeStruct(v)
	default:
		return fmt.Sprint(v.Interface())
	}
}

func shapeMap(v reflect.Value) Fields {
	byKey := make(map[string]any, v.Len())
	for entry := v.MapRange(); entry.Next(); {
		byKey[fmt.Sprint(entry.Key().Interface())] = entry.Value().Interface()
	}
	out := make(Fields, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, Field{key, shapeValue(byKey[key])})
	}
	return out
}

// shapeStruct keeps the order of the fields. Every key is present.
func shapeStruct(v reflect.Value) Fields {
	keys := jsonKeys(v.Type())
	out := make(Fields, len(keys))
	for i, k := range keys {
		out[i] = Field{k.name, shapeValue(v.FieldByIndex(k.index).Interface())}
	}
	return out
}

// FieldsOf are the keys of a document that is a struct, in the order of its fields. A key with the option
// `omitzero` is left out where it is zero.
func FieldsOf(document any) Fields {
	var out Fields
	v := reflect.ValueOf(document)
	for _, k := range jsonKeys(v.Type()) {
		if field := v.FieldByIndex(k.index); !k.optional || !field.IsZero() {
			out = append(out, Field{k.name, shapeValue(field.Interface())})
		}
	}
	return out
}

func shapeMarshaled(m json.Marshaler) any {
	text, err := m.MarshalJSON()
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return shapeValue(out)
}

func snakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		afterLower := i > 0 && unicode.IsLower(runes[i-1])
		startsWord := i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])
		if unicode.IsUpper(r) && (afterLower || startsWord) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
