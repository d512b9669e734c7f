package output

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// anyRow is a row with a cell of every kind.
type anyRow struct {
	name  string
	ref   sandbox.Ref
	state sandbox.State
	age   time.Duration
	n     *int
	why   string
}

func anyColumns() []Column[anyRow] {
	return []Column[anyRow]{
		{Name: "name", Value: func(r anyRow) any { return r.name }},
		{Name: "ref", Value: func(r anyRow) any { return r.ref }},
		{Name: "state", Value: func(r anyRow) any { return r.state }},
		{Name: "age_seconds", Head: "AGE", Value: func(r anyRow) any { return Seconds(r.age) }},
		{Name: "idle_seconds", Head: "IDLE", Spare: true, Value: func(r anyRow) any { return Seconds(r.age / 2) }},
		{Name: "exit_code", Head: "EXIT", Value: func(r anyRow) any { return r.n }},
		{Name: "labels", Level: Wide, Value: func(r anyRow) any { return map[string]string{"team": r.why} }},
		{Name: "why", Value: func(r anyRow) any { return r.why }, Tone: func(anyRow) Tone { return Bad }},
	}
}

// hardNames are wide, combining, long, empty and hostile.
func hardNames() []string {
	return []string{
		strings.Repeat("日本", 100), strings.Repeat("🦊", 100), strings.Repeat("e\u0301", 200), "", "a", "-",
		strings.Repeat("word ", 40), "\x1b[31mred\x1b[0m", "a\u200db\u202ec", "👩\u200d💻 ❤\ufe0f", strings.Repeat("x", 200),
	}
}

func anyRows(r *rand.Rand, n int) []anyRow {
	rows := make([]anyRow, n)
	names := hardNames()
	for i := range rows {
		rows[i] = anyRow{
			name: names[r.IntN(len(names))], ref: sandbox.Ref{Provider: "p", ID: fmt.Sprintf("i%0*d", 3+r.IntN(20), i)},
			state: sandbox.States()[r.IntN(len(sandbox.States()))], age: time.Duration(r.Int64N(int64(100 * time.Hour))), why: names[r.IntN(len(names))],
		}
		if r.IntN(3) == 0 {
			rows[i].n = new(r.IntN(300))
		}
	}
	return rows
}

// oneWord says that a line is longer than the terminal because it holds one word, which is
// left whole so that it can be copied.
func oneWord(line string) bool { return len(strings.Fields(line)) <= 1 }

// TestEveryWidth holds that no line is longer than the terminal, that every row is there, and
// that its reference is whole, in a table, a wide table and a page.
func TestEveryWidth(t *testing.T) {
	t.Parallel()
	for width := 20; width <= 200; width++ {
		for n, env := range []string{"NO_COLOR=1", "LC_ALL=C", "LANG=C.UTF-8"} {
			r := rand.New(rand.NewPCG(uint64(width), uint64(n)))
			rows := anyRows(r, 1+r.IntN(8))
			for _, format := range []string{"table", "wide", "page"} {
				out := printRows(t, format, place{width: width, env: []string{env}}, rows)
				for line := range strings.Lines(out) {
					line = strings.TrimSuffix(line, "\n")
					if !oneWord(line) {
						require.LessOrEqual(t, cellWidth(line), width, "%s at %d: %q", format, width, line)
					}
					require.Equal(t, strings.TrimRight(line, " "), line, "no trailing space")
					require.True(t, env != "LC_ALL=C" || strings.IndexFunc(line, beyondASCII) < 0, "%q", line)
				}
				for _, row := range rows {
					require.Contains(t, out, row.ref.String(), "%s at %d", format, width)
				}
			}
		}
	}
}

// printRows gives what the rows look like as a list, or as the table of a page.
func printRows(t *testing.T, format string, at place, rows []anyRow) string {
	t.Helper()
	s := newStage(at)
	if format == "page" {
		p := s.printer(t, "table")
		require.NoError(t, p.Show(Document{Human: func(sheet *Sheet) {
			cells := make([][]any, len(rows))
			for i, row := range rows {
				cells[i] = []any{row.name, row.ref, row.state, row.age, row.why}
				sheet.Field("why", row.why).FieldTone("name", row.name, Bad)
			}
			sheet.Section("Rows").Table([]string{"name", "ref", "state", "age", "why"}, cells).Text(rows[0].why)
		}}))
		return s.out.String()
	}
	list, err := NewList(s.printer(t, format), ListSpec[anyRow]{Schema: "sbx.x/v1", Columns: anyColumns()})
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, list.Add(row))
	}
	require.NoError(t, list.Close())
	return s.out.String()
}

// TestOneColumn: there is no sensible form, but nothing is lost and nothing fails.
func TestOneColumn(t *testing.T) {
	t.Parallel()
	rows := anyRows(rand.New(rand.NewPCG(1, 1)), 20)
	for _, format := range []string{"table", "wide", "page"} {
		out := printRows(t, format, place{width: 1}, rows)
		for _, row := range rows {
			assert.Contains(t, out, row.ref.String())
		}
	}
}

// TestNumbersAndAgesNeverWrap: a cell with a number or an age is whole, and on the line of its
// row, or its column is dropped.
func TestNumbersAndAgesNeverWrap(t *testing.T) {
	t.Parallel()
	rows := []anyRow{{name: "n", ref: sandbox.Ref{Provider: "p", ID: "i1"}, state: sandbox.StateRunning, age: 83 * time.Minute, n: new(12345678)}}
	for width := 1; width <= 100; width++ {
		out := printRows(t, "table", place{width: width, env: []string{"NO_COLOR=1"}}, rows)
		assert.Equal(t, strings.Contains(out, "AGE"), strings.Contains(out, "1h23m"), out)
		assert.Equal(t, strings.Contains(out, "EXIT"), strings.Contains(out, "12345678"), out)
		assert.Equal(t, 2, strings.Count(out, "\n"), out)
	}
}

// TestSpokenRows: a screen reader gets "key: value", a blank line between two rows, and
// nothing that was cut.
func TestSpokenRows(t *testing.T) {
	t.Parallel()
	rows := []anyRow{
		{name: strings.Repeat("日本", 50), ref: sandbox.Ref{Provider: "p", ID: "i1"}, state: sandbox.StateRunning, age: time.Hour, n: new(3), why: "busy loop"},
		{ref: sandbox.Ref{Provider: "p", ID: "i2"}, state: sandbox.StateFailed, age: time.Minute},
	}
	out := printRows(t, "table", place{width: 40, env: []string{"NO_COLOR=1", EnvAccessible + "=1"}}, rows)
	assert.Equal(t, "name: "+rows[0].name+"\nref: p/i1\nstate: running\nage: 1h\nidle: 30m\nexit: 3\nwhy: busy loop\n\n"+
		"ref: p/i2\nstate: failed\nage: 1m\nidle: 30s\n", out)
	pipe := printRows(t, "table", place{env: []string{EnvAccessible + "=1"}}, rows)
	assert.True(t, strings.HasPrefix(pipe, "NAME\tREF\t"), "programs get what they always get")
}

func TestScreenOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  []string
		want screen
	}{
		"plain":               {nil, screen{tty: true, width: 80, colour: true}},
		"NO_COLOR":            {[]string{"NO_COLOR=1"}, screen{tty: true, width: 80}},
		"dumb":                {[]string{"TERM=dumb"}, screen{tty: true, width: 80, dumb: true}},
		"C":                   {[]string{"LC_ALL=C"}, screen{tty: true, width: 80, colour: true, ascii: true}},
		"POSIX by LANG":       {[]string{"LANG=POSIX"}, screen{tty: true, width: 80, colour: true, ascii: true}},
		"C.UTF-8":             {[]string{"LC_ALL=C.UTF-8", "LANG=C"}, screen{tty: true, width: 80, colour: true}},
		"empty LC_ALL":        {[]string{"LC_ALL=", "LANG=de_DE.utf8@euro"}, screen{tty: true, width: 80, colour: true}},
		"latin1":              {[]string{"LC_CTYPE=de_DE.ISO-8859-1"}, screen{tty: true, width: 80, colour: true, ascii: true}},
		"no character set":    {[]string{"LANG=en_US"}, screen{tty: true, width: 80, colour: true}},
		"screen reader":       {[]string{EnvAccessible + "=yes"}, screen{tty: true, width: 80, colour: true, accessible: true}},
		"no screen reader":    {[]string{EnvAccessible + "=0"}, screen{tty: true, width: 80, colour: true}},
		"screen reader false": {[]string{EnvAccessible + "=false"}, screen{tty: true, width: 80, colour: true}},
	} {
		p := newStage(place{width: 80, env: tc.env}).Process
		assert.Equal(t, tc.want, screenOf(p, p.Stdout, Options{}), name)
	}
}

func TestAListIsSortedOnATerminalAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		at      place
		columns []string
		want    string
	}{
		{place{width: 80}, nil, "WORD\na\nb\n"},
		{place{width: 80}, []string{"ref"}, "REF\np/a\np/b\n"},
		{place{}, nil, "REF\np/b\np/a\n"},
	} {
		s := newStage(tc.at)
		p := s.printer(t, "table")
		p.Columns = tc.columns
		list, err := NewList(p, ListSpec[string]{
			Schema: "sbx.x/v1", Order: func(s string) string { return s },
			Columns: []Column[string]{{Name: "ref", Value: func(v string) any { return "p/" + v }}},
			Screen:  []Column[string]{{Name: "word", Value: func(v string) any { return v }}},
		})
		require.NoError(t, err)
		require.NoError(t, list.Add("b"))
		require.NoError(t, list.Add("a"))
		require.NoError(t, list.Close())
		assert.Equal(t, tc.want, s.out.String())
	}
}
