package output

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// machineText is a shaped value as one cell of csv or tsv, not yet escaped: unknown is
// empty, a map is "k=v,k=v", a list of words "a,b", anything deeper compact JSON.
func machineText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		return joinScalars(v)
	case Fields:
		return joinPairs(v)
	}
	return string(appendJSON(nil, v, compact))
}

func joinScalars(list []any) string {
	words := make([]string, len(list))
	for i, e := range list {
		if !isScalar(e) {
			return string(appendJSON(nil, list, compact))
		}
		words[i] = machineText(e)
	}
	return strings.Join(words, ",")
}

func joinPairs(fields Fields) string {
	words := make([]string, len(fields))
	for i, f := range fields {
		if !isScalar(f.Value) {
			return string(appendJSON(nil, fields, compact))
		}
		words[i] = f.Key + "=" + machineText(f.Value)
	}
	return strings.Join(words, ",")
}

func isScalar(v any) bool {
	switch v.(type) {
	case []any, Fields:
		return false
	}
	return true
}

// noValue is shown for an unknown or missing value.
const noValue = "-"

// humanText is a value for eyes, not yet escaped: "-" for unknown, "3m ago" for an instant,
// "1h30m" for a duration and for a `_seconds` key.
func humanText(v any, key string, now time.Time) string {
	if at, ok := asInstant(v); ok {
		return relativeTime(at, now)
	}
	if d, ok := v.(time.Duration); ok {
		return sandbox.FormatElapsed(d)
	}
	shaped := shapeValue(v)
	if f, ok := asNumber(shaped); ok && strings.HasSuffix(key, "_seconds") {
		return sandbox.FormatElapsed(time.Duration(f * float64(time.Second)))
	}
	if f, ok := shaped.(float64); ok {
		return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64)
	}
	if text := machineText(shaped); text != "" {
		return text
	}
	return noValue
}

func asInstant(v any) (time.Time, bool) {
	switch v := v.(type) {
	case time.Time:
		return v, !v.IsZero()
	case *time.Time:
		if v != nil {
			return *v, !v.IsZero()
		}
	}
	return time.Time{}, false
}

func asNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// relativeTime writes an instant as seen from now: "3m ago", "in 2h", "now" within a second.
func relativeTime(at, now time.Time) string {
	switch d := now.Sub(at); {
	case d >= time.Second:
		return sandbox.FormatDuration(d) + " ago"
	case d <= -time.Second:
		return "in " + sandbox.FormatDuration(-d)
	}
	return "now"
}

// Level says in which formats a column appears without being asked for.
type Level int

// The levels. JSON, ndjson and yaml carry every level.
const (
	Default Level = iota // in every format
	Wide                 // in wide and csv, not in table
	Extra                // only where --columns names it
)

// Column is one property of T: its key, its heading and how it is read. One
// list of columns serves every format, --columns, completion and docs.
type Column[T any] struct {
	Name  string         // JSON key and word for --columns, in snake_case with its unit: "age_seconds"
	Head  string         // heading of the human table; "" = Name in capitals
	Level Level          // where it appears unasked
	Value func(T) any    // what machines read; nil and nil pointers mean "unknown"
	Text  func(T) string // the human cell; nil = made from Value
	Tone  func(T) Tone   // the colour's meaning; nil = made from Value
	Spare bool           // a table that is wider than the terminal may do without it
}

// Names lists the words that --columns takes, in column order.
func Names[T any](columns []Column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// Of makes columns of a T from those of a part of it.
func Of[T, U any](columns []Column[U], part func(T) U) []Column[T] {
	out := make([]Column[T], len(columns))
	for i, c := range columns {
		out[i] = Column[T]{Name: c.Name, Head: c.Head, Level: c.Level, Spare: c.Spare, Value: func(t T) any { return c.Value(part(t)) }}
		if c.Text != nil {
			out[i].Text = func(t T) string { return c.Text(part(t)) }
		}
		if c.Tone != nil {
			out[i].Tone = func(t T) Tone { return c.Tone(part(t)) }
		}
	}
	return out
}

// chooseColumns picks the columns called names, in that order; without names those up
// to level. An unknown name is fault.KindUsage.
func chooseColumns[T any](columns []Column[T], names []string, level Level) ([]Column[T], error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool { return c.Level > level }), nil
	}
	chosen := make([]Column[T], 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == name })
		if i < 0 {
			return nil, unknownColumn(name, Names(columns))
		}
		chosen = append(chosen, columns[i])
	}
	return chosen, nil
}

// CheckColumns reports the first of wanted that columns lacks, as
// fault.KindUsage, so that a command can refuse before it calls anybody.
func CheckColumns[T any](columns []Column[T], wanted []string) error {
	_, err := chooseColumns(columns, wanted, Extra)
	return err
}

func unknownColumn(name string, known []string) error {
	list := strings.Join(known, ", ")
	err := fault.Usage("unknown column %q", Escape(name))
	if guess := fault.Nearest(name, known); guess != "" {
		return err.WithHint("did you mean %s? columns: %s", guess, list)
	}
	return err.WithHint("columns: %s", list)
}

// columnTitle is the title of the human table.
func (c Column[T]) columnTitle() string {
	if c.Head != "" {
		return c.Head
	}
	return strings.ToUpper(c.Name)
}
