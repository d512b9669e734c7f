package output

import (
	"cmp"
	"math"
	"reflect"
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
	Value func(T) any    // what machines read; nil and nil pointers mean "unknown"; not in a column of Columns
	Text  func(T) string // the human cell; nil = made from Value
	Tone  func(T) Tone   // the colour's meaning; nil = made from Value
	Spare bool           // a table that is wider than the terminal may do without it; a Wide one always may
	Whole bool           // its text is never cut: a reference or a word of a closed list
	Keep  int            // cells of its text that stay while other texts can be cut

	from  *source // of Columns: makes the document that has the value
	index []int   // where it has it
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
	made := map[*source]*source{} // of a part that several columns share
	for i, c := range columns {
		out[i] = Column[T]{Name: c.Name, Head: c.Head, Level: c.Level, Spare: c.Spare, Whole: c.Whole, Keep: c.Keep, index: c.index}
		if c.from != nil && made[c.from] == nil {
			made[c.from] = &source{func(item any) reflect.Value { return c.from.document(new(part(typed[T](item)))) }}
		}
		if out[i].from = made[c.from]; c.Value != nil {
			out[i].Value = func(t T) any { return c.Value(part(t)) }
		}
		if c.Text != nil {
			out[i].Text = func(t T) string { return c.Text(part(t)) }
		}
		if c.Tone != nil {
			out[i].Tone = func(t T) Tone { return c.Tone(part(t)) }
		}
	}
	return out
}

// Complete fills what the columns leave open from those of the same name in from: so a screen
// has other columns than documents, in another order, and the values are defined once. A level
// and Spare are those of the columns, or of from where the column has nothing but its name.
func Complete[T any](columns, from []Column[T]) []Column[T] {
	out := slices.Clone(columns)
	for i, c := range out {
		at := slices.IndexFunc(from, func(f Column[T]) bool { return f.Name == c.Name })
		if at < 0 || c.Value != nil || c.from != nil {
			continue
		}
		out[i] = from[at]
		out[i].Level, out[i].Spare, out[i].Whole = max(c.Level, from[at].Level), c.Spare || from[at].Spare, c.Whole || from[at].Whole
	}
	return out
}

// column is a Column whose type of item is erased; see list.
type column struct {
	name, title  string
	level        Level
	spare, whole bool
	keep         int
	from         *source // and index, instead of value
	index        []int
	value        func(any) any
	text         func(any) string // nil = made from value
	tone         func(any) Tone   // nil = made from value
}

// cell is the value of an item as it is shown on a screen.
func (c column) cell(item, value any, s screen, now time.Time) (text string, tone Tone) {
	if c.text != nil {
		text = c.text(item)
	} else {
		text = humanText(value, c.name, now)
	}
	if c.tone != nil {
		tone = c.tone(item)
	} else {
		tone = toneOf(value, c.name)
	}
	return s.escape(text), tone
}

func erasedColumns[T any](columns []Column[T]) []column {
	if columns == nil {
		return nil
	}
	out := make([]column, len(columns))
	for i, c := range columns {
		out[i] = column{
			name: c.Name, title: cmp.Or(c.Head, strings.ToUpper(c.Name)), level: c.Level, spare: c.Spare, whole: c.Whole, keep: c.Keep,
			from: c.from, index: c.index, value: erasedFunc(c.Value), text: erasedFunc(c.Text), tone: erasedFunc(c.Tone),
		}
	}
	return out
}

// chooseColumns picks the columns called names, in that order; without names those up
// to level. An unknown name is fault.KindUsage.
func chooseColumns(columns []column, names []string, level Level) ([]column, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.level > level }), nil
	}
	chosen := make([]column, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, unknownColumn(name, namesOf(columns))
		}
		chosen = append(chosen, columns[i])
	}
	return chosen, nil
}

func namesOf(columns []column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// CheckColumns reports the first of wanted that columns lacks, as
// fault.KindUsage, so that a command can refuse before it calls anybody.
func CheckColumns[T any](columns []Column[T], wanted []string) error {
	_, err := chooseColumns(erasedColumns(columns), wanted, Extra)
	return err
}

func unknownColumn(name string, known []string) error {
	list := strings.Join(known, ", ")
	err := fault.Usage("unknown column %q", Escape(name))
	guess := fault.Nearest(name, known)
	if parts := columnsWith(name, known); guess == "" && len(parts) > 0 {
		guess = strings.Join(parts, " or ")
	}
	if guess != "" {
		return err.WithHint("did you mean %s? columns: %s", guess, list)
	}
	if slices.Contains(known, "labels") {
		return err.WithHint("columns: %s; a label is a part of labels: -o template='{{.ref}} {{.labels.%s}}'", list, Escape(name))
	}
	return err.WithHint("columns: %s", list)
}

// columnsWith are the columns that a word stands for: the one that adds a unit to it, as
// age_seconds to age, else those that begin with it.
func columnsWith(word string, known []string) []string {
	for _, unit := range []string{"_seconds", "_mb", "_percent", "_at", "_id"} {
		if name := strings.ToLower(word) + unit; slices.Contains(known, name) {
			return []string{name}
		}
	}
	var found []string
	for _, name := range known {
		if word != "" && strings.HasPrefix(name, strings.ToLower(word)+"_") {
			found = append(found, name)
		}
	}
	return found
}
