package output

import (
	"slices"
	"strings"
	"time"
)

// view is what a page must know of the place where it appears.
type view struct {
	screen

	now time.Time
}

func (p *Printer) pageView() view { return view{screen: p.out, now: p.now()} }

// indent precedes everything inside a section.
const indent = "  "

func (s *Sheet) renderPage(v view) ([]byte, error) {
	var b strings.Builder
	margin := ""
	for i, block := range s.blocks {
		switch {
		case block.title != "":
			if i > 0 {
				b.WriteByte('\n')
			}
			margin = indent
			for _, line := range WrapText(v.escape(block.title), v.textRoom(""), "") {
				b.WriteString(v.emphasize(line) + "\n")
			}
		case block.fields != nil:
			v.writeFields(&b, block.fields, margin)
		case block.header != nil:
			if err := v.writeTable(&b, block, margin); err != nil {
				return nil, err
			}
		default:
			v.writeText(&b, block.text, margin)
		}
	}
	return []byte(b.String()), nil
}

func (v view) emphasize(text string) string {
	if v.colour {
		return boldText(text)
	}
	return text
}

// cellText writes one value; instants are absolute.
func (v view) cellText(value any, key string) string {
	if at, ok := asInstant(value); ok {
		return formatInstant(at)
	}
	return v.escape(humanText(value, key, v.now))
}

// distanceFromNow says, on a terminal, how far an instant is from now.
func (v view) distanceFromNow(value any) string {
	if at, ok := asInstant(value); ok && v.tty {
		return " (" + relativeTime(at, v.now) + ")"
	}
	return ""
}

// minField is the room for values beside their names; with less, each name has a line of its
// own form.
const minField = 24

func (v view) writeFields(b *strings.Builder, fields []sheetField, margin string) {
	names := 0
	for _, f := range fields {
		names = max(names, cellWidth(v.escape(f.name)))
	}
	room := v.width - len(margin) - names - gap
	for _, f := range fields {
		name, value := v.escape(f.name), v.cellText(f.value, f.name)+v.distanceFromNow(f.value)
		if v.accessible || v.width > 0 && (room < minField || longestWord(value) > room) {
			b.WriteString(v.keyLine(margin, name, value))
			continue
		}
		head := margin + name + strings.Repeat(" ", names-cellWidth(name)+gap)
		for _, line := range WrapText(value, room, "") {
			b.WriteString(strings.TrimRight(head+v.paint(line, f.tone), " ") + "\n")
			head = strings.Repeat(" ", cellWidth(head))
		}
	}
}

func (v view) writeTable(b *strings.Builder, block block, margin string) error {
	columns := make([]tableColumn, len(block.header))
	titles := make([]string, len(columns))
	rows := v.cellTexts(block)
	for i, h := range block.header {
		titles[i] = strings.ToUpper(v.escape(h))
		text := func(row []any) bool { return i < len(row) && runningText(row[i], h) }
		columns[i] = tableColumn{title: titles[i], ref: h == "ref", text: slices.ContainsFunc(block.rows, text)}
		if block.sparse && i == len(columns)-1 {
			columns[i].keep = ReasonCells
		}
	}
	measureTable(columns, rows)
	limit := v.width
	if limit > 0 {
		limit = max(1, limit-len(margin))
	}
	shown, dropped := fitTable(columns, limit, keepColumns{empty: !block.sparse})
	if v.accessible {
		v.stackTable(b, titles, rows, margin)
		return nil
	}
	widths := make([]int, len(shown))
	for i, at := range shown {
		widths[i] = columns[at].width
	}
	lines := [][]string{pickShown(titles, shown)}
	for n, row := range rows {
		cells := make([]string, len(shown))
		for i, at := range shown {
			cells[i] = row[at]
			if columns[at].text {
				cells[i] = v.cut(cells[i], widths[i])
			}
			if at < len(block.rows[n]) {
				cells[i] = v.paint(cells[i], toneOf(block.rows[n][at], block.header[at]))
			}
		}
		lines = append(lines, cells)
	}
	text, err := alignRows(lines, widths)
	for line := range strings.Lines(string(text)) {
		b.WriteString(margin + line)
	}
	if len(dropped) > 0 {
		v.writeText(b, "("+noRoom(pickShown(block.header, dropped))+")", margin)
	}
	return err
}

func (v view) stackTable(b *strings.Builder, titles []string, rows [][]string, margin string) {
	for n, row := range rows {
		if n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(v.stackRow(margin, titles, row))
	}
}

// cellTexts writes every cell, in as many columns as there are headers.
func (v view) cellTexts(block block) [][]string {
	rows := make([][]string, len(block.rows))
	for i, row := range block.rows {
		rows[i] = make([]string, len(block.header))
		for j := range rows[i] {
			if j < len(row) {
				rows[i][j] = v.cellText(row[j], block.header[j])
			}
		}
	}
	return rows
}

func (v view) writeText(b *strings.Builder, text, margin string) {
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		for _, piece := range WrapText(v.escape(line), v.textRoom(margin), "") {
			b.WriteString(strings.TrimRight(margin+piece, " ") + "\n")
		}
	}
}

// Sheet is a page about one thing for people: sections, fields, small tables, text.
// It escapes whatever it is given. The zero value is an empty page.
type Sheet struct{ blocks []block }

// block is one piece of a page.
type block struct {
	title  string // of a section
	fields []sheetField
	header []string
	rows   [][]any
	sparse bool // columns without a value are left out, and the last one keeps its room
	text   string
}

type sheetField struct {
	name  string
	value any
	tone  Tone
}

// Section begins a new part of the page.
func (s *Sheet) Section(title string) *Sheet {
	s.blocks = append(s.blocks, block{title: title})
	return s
}

// Field adds "name  value". Values are those of Column.Value; nil is shown as "-". Durations,
// numbers whose name ends in _seconds and instants are formatted for people.
func (s *Sheet) Field(name string, value any) *Sheet {
	return s.addField(sheetField{name, value, toneOf(value, name)})
}

// FieldTone is Field with the colour's meaning given.
func (s *Sheet) FieldTone(name string, value any, tone Tone) *Sheet {
	return s.addField(sheetField{name, value, tone})
}

func (s *Sheet) addField(f sheetField) *Sheet {
	if n := len(s.blocks); n > 0 && s.blocks[n-1].fields != nil {
		s.blocks[n-1].fields = append(s.blocks[n-1].fields, f)
		return s
	}
	s.blocks = append(s.blocks, block{fields: []sheetField{f}})
	return s
}

// Table adds aligned rows under headers. Cells are values as in Field. A row
// with fewer cells than headers is filled up, further cells are dropped.
func (s *Sheet) Table(headers []string, rows [][]any) *Sheet {
	if len(headers) > 0 && len(rows) > 0 {
		s.blocks = append(s.blocks, block{header: headers, rows: rows})
	}
	return s
}

// Compact is Table without the columns in which no row has a value.
func (s *Sheet) Compact(headers []string, rows [][]any) *Sheet {
	n := len(s.blocks)
	if s.Table(headers, rows); len(s.blocks) > n {
		s.blocks[n].sparse = true
	}
	return s
}

// Text adds running text; its line breaks are kept, long lines are wrapped on a
// terminal.
func (s *Sheet) Text(text string) *Sheet {
	s.blocks = append(s.blocks, block{text: text})
	return s
}

// addFields adds every key of an object as one line.
func (s *Sheet) addFields(fields Fields) {
	for _, f := range fields {
		s.Field(f.Key, f.Value)
	}
}
