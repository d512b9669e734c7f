package output

import (
	"strings"
	"time"
)

// view is what a page must know of the place where it appears.
type view struct {
	width  int // 0 = no wrapping
	colour bool
	tty    bool
	now    time.Time
}

func (p *Printer) pageView() view {
	return view{width: p.outWidth, colour: p.colour, tty: p.tty, now: p.now()}
}

// indent precedes everything inside a section.
const indent = "  "

// renderPage makes the page.
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
			b.WriteString(v.emphasize(Escape(block.title)) + "\n")
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

func (v view) paintTone(text string, tone Tone) string {
	if v.colour {
		return paintText(text, tone)
	}
	return text
}

// cellText writes one value; instants are absolute.
func (v view) cellText(value any, key string) string {
	if at, ok := asInstant(value); ok {
		return formatInstant(at)
	}
	return Escape(humanText(value, key, v.now))
}

// distanceFromNow says, on a terminal, how far an instant is from now.
func (v view) distanceFromNow(value any) string {
	if at, ok := asInstant(value); ok && v.tty {
		return " (" + relativeTime(at, v.now) + ")"
	}
	return ""
}

func (v view) writeFields(b *strings.Builder, fields []sheetField, margin string) {
	names := 0
	for _, f := range fields {
		names = max(names, cellWidth(Escape(f.name)))
	}
	for _, f := range fields {
		name := Escape(f.name)
		head := margin + name + strings.Repeat(" ", names-cellWidth(name)+gap)
		for i, line := range wrapText(v.cellText(f.value, f.name)+v.distanceFromNow(f.value), v.width-cellWidth(head)) {
			if i > 0 {
				head = strings.Repeat(" ", cellWidth(head))
			}
			b.WriteString(strings.TrimRight(head+v.paintTone(line, f.tone), " ") + "\n")
		}
	}
}

func (v view) writeTable(b *strings.Builder, block block, margin string) error {
	columns := len(block.header)
	widths, cuttable := make([]int, columns), make([]bool, columns)
	titles := make([]string, columns)
	for i, h := range block.header {
		titles[i] = strings.ToUpper(Escape(h))
	}
	growWidths(widths, titles)
	rows := v.cellTexts(block)
	for i, row := range rows {
		growWidths(widths, row)
		for j, value := range block.rows[i][:min(columns, len(block.rows[i]))] {
			cuttable[j] = cuttable[j] || runningText(value, block.header[j])
		}
	}
	limit := v.width
	if limit > 0 {
		limit -= len(margin)
	}
	cut := shrinkWidths(widths, cuttable, limit, minText)
	for i, row := range rows {
		v.finishRow(row, block, i, cut, widths)
	}
	text, err := layOut(widths, append([][]string{titles}, rows...))
	for line := range strings.Lines(string(text)) {
		b.WriteString(margin + line)
	}
	return err
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

func (v view) finishRow(row []string, block block, i, cut int, widths []int) {
	if cut >= 0 {
		row[cut] = truncateCells(row[cut], widths[cut])
	}
	for j, value := range block.rows[i][:min(len(row), len(block.rows[i]))] {
		row[j] = v.paintTone(row[j], toneOf(value, block.header[j]))
	}
}

func (v view) writeText(b *strings.Builder, text, margin string) {
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")
		for _, piece := range wrapText(Escape(line), v.width-len(margin)) {
			b.WriteString(strings.TrimRight(margin+piece, " ") + "\n")
		}
	}
}

// wrapText breaks text at spaces into lines of at most limit cells; words longer
// than that stay whole, so that ids and commands can be copied. A limit below
// one means no wrapping.
func wrapText(text string, limit int) []string {
	if limit < 1 || cellWidth(text) <= limit {
		return []string{text}
	}
	var lines []string
	line, begun := "", false
	for word := range strings.SplitSeq(text, " ") {
		switch {
		case !begun:
			line, begun = word, true
		case cellWidth(line)+1+cellWidth(word) <= limit:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
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
