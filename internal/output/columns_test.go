package output

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// Common is embedded in crate.
type Common struct {
	Cause *sandbox.Cause `json:"cause" table:",wide,spare"`
}

// crate is the document of a box.
type crate struct {
	Ref     string     `json:"ref" table:",whole"`
	Age     *float64   `json:"age_seconds" table:"AGE"`
	Since   *time.Time `json:"since"`
	Secret  string     `json:"-"`
	Memory  *Mebibytes `json:"memory_mb"`
	Missing *[]string  `json:"missing,omitzero"`

	Common
}

func crateOf(b box) crate {
	return crate{Ref: b.ref.String(), Age: new(Seconds(b.age)), Since: Time(b.created), Memory: MiB(b.memory), Common: Common{new(sandbox.CauseLeak)}}
}

func TestColumnsFollowTheFields(t *testing.T) {
	t.Parallel()
	columns := erasedColumns(Columns(crateOf, Column[box]{Name: "ref", Text: func(box) string { return "REF" }, Tone: func(box) Tone { return Bad }}))
	type shown struct {
		name, title string
		level       Level
		spare       bool
		whole       bool
		text, tone  bool
	}
	var got []shown
	for _, c := range columns {
		got = append(got, shown{c.name, c.title, c.level, c.spare, c.whole, c.text != nil, c.tone != nil})
	}
	assert.Equal(t, []shown{
		{name: "ref", title: "REF", level: Default, whole: true, text: true, tone: true},
		{name: "age_seconds", title: "AGE", level: Default},
		{name: "since", title: "SINCE", level: Extra},
		{name: "memory_mb", title: "MEMORY_MB", level: Extra},
		{name: "missing", title: "MISSING", level: Extra},
		{name: "cause", title: "CAUSE", level: Wide, spare: true},
	}, got)
	b := box{ref: sandbox.Ref{Provider: "p", ID: "x"}, age: time.Minute, memory: new(int64(3 << 19))}
	assert.Equal(t, []any{"p/x", 60.0, nil, Mebibytes(1.5), nil, "leak"}, readValues(nil, columns, &b))
}

// TestADocumentIsMadeOnceForAllColumns: a row of thirty columns is not thirty documents.
func TestADocumentIsMadeOnceForAllColumns(t *testing.T) {
	t.Parallel()
	made := 0
	columns := Columns(func(b box) crate { made++; return crateOf(b) })
	columns = Complete([]Column[box]{{Name: "ref"}, {Name: "own", Value: func(box) any { return 1 }}, {Name: "age_seconds"}, {Name: "cause"}}, columns)
	s := newStage(place{width: 80})
	l, err := NewList(s.printer(t, "wide"), ListSpec[box]{Columns: columns})
	require.NoError(t, err)
	require.NoError(t, l.Add(boxes()[0]))
	require.NoError(t, l.Close())
	assert.Equal(t, 1, made)
}

func TestMistakesInColumnsAreFound(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, `output: output.crate has no key "name"`, func() { Columns(crateOf, Column[box]{Name: "name"}) })
	type wrong struct {
		A int `json:"a" table:"A,narrow"`
	}
	assert.PanicsWithValue(t, `output: no option "narrow" of a table`, func() { Columns(func(box) wrong { return wrong{} }) })
}

func TestOrderedKeepsItsOrder(t *testing.T) {
	t.Parallel()
	o := Ordered[int]{{"b", 2}, {"a", 1}}
	want := Fields{{"b", int64(2)}, {"a", int64(1)}}
	assert.Equal(t, want, shapeValue(o))
	assert.Equal(t, want, shapeValue(&o))
	assert.Nil(t, shapeValue((*Ordered[int])(nil)))
	assert.Equal(t, Fields{}, shapeValue(Ordered[int](nil)))
}

func TestFieldsOf(t *testing.T) {
	t.Parallel()
	want := Fields{{"ref", "p/x"}, {"age_seconds", 0.0}, {"since", nil}, {"memory_mb", nil}, {"cause", "leak"}}
	c := crateOf(box{ref: sandbox.Ref{Provider: "p", ID: "x"}})
	assert.Equal(t, want, FieldsOf(c))
	assert.Len(t, shapeValue(c), len(want)+1, "within a document every key is present")
	c.Missing = &[]string{}
	assert.Equal(t, Field{"missing", []any{}}, FieldsOf(c)[4])
}
