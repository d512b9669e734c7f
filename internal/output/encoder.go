package output

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// want is what an encoder reads of a record.
type want int

const (
	wantValues want = iota
	wantCells       // values, texts and tones
	wantLine
	wantName
)

// encoder writes the records of one list in one format. addRecord may buffer; flushRows and
// closeDocument write out the buffer.
type encoder interface {
	selection() want
	addRecord(r record) error
	flushRows() error
	closeDocument(e ending) error
}

// heading is a column without its type.
type heading struct {
	name  string
	key   string // the name as a key of JSON
	title string
	spare bool
	whole bool
	keep  int
}

func newEncoder(p *Printer, schema string, columns []heading, lines, sorted bool) encoder { //nolint:ireturn // one of a closed set
	switch p.Format.Name() {
	case JSON:
		return newStream(p, schema, columns)
	case NDJSON:
		return &lineEncoder{printer: p, columns: columns}
	case NameOnly:
		return nameEncoder{p}
	case CSV:
		return newCSV(p, columns)
	case Table, WideTable:
		switch {
		case lines:
			return textEncoder{p}
		case p.out.tty:
			return newGrid(p, columns, sorted)
		}
		return &tabEncoder{printer: p, columns: columns}
	default:
		return &collector{printer: p, schema: schema, columns: columns}
	}
}

func recordObject(columns []heading, r record) Fields {
	out := make(Fields, len(columns))
	for i, c := range columns {
		out[i] = Field{c.name, shapeValue(r.values[i])}
	}
	return out
}

// textEncoder writes running text, one line per item.
type textEncoder struct{ printer *Printer }

func (textEncoder) selection() want            { return wantLine }
func (textEncoder) flushRows() error           { return nil }
func (textEncoder) closeDocument(ending) error { return nil }
func (e textEncoder) addRecord(r record) error { return e.printer.Line(r.line) }

// nameEncoder writes one REF per line and nothing else.
type nameEncoder struct{ printer *Printer }

func (nameEncoder) selection() want              { return wantName }
func (e nameEncoder) flushRows() error           { return e.printer.screen.flushOutput() }
func (e nameEncoder) closeDocument(ending) error { return e.flushRows() }
func (e nameEncoder) addRecord(r record) error {
	return e.printer.screen.gatherOutput([]byte(Escape(r.name) + "\n"))
}

// tabEncoder writes tab-separated lines for pipes: a header of upper-cased
// keys, then one line per item, never cut.
type tabEncoder struct {
	printer *Printer
	columns []heading
	begun   bool
}

// selection includes the tones where CLICOLOR_FORCE asks for colour in a pipe.
func (e *tabEncoder) selection() want {
	if e.printer.out.colour {
		return wantCells
	}
	return wantValues
}

func (e *tabEncoder) flushRows() error { return e.printer.screen.flushOutput() }

func (e *tabEncoder) headerLine() string {
	if e.begun {
		return ""
	}
	e.begun = true
	names := make([]string, len(e.columns))
	for i, c := range e.columns {
		names[i] = strings.ToUpper(c.name)
	}
	return strings.Join(names, "\t") + "\n"
}

func (e *tabEncoder) addRecord(r record) error {
	cells := make([]string, len(r.values))
	for i, v := range r.values {
		cells[i] = Escape(machineText(shapeValue(v)))
		if e.printer.out.colour {
			cells[i] = e.printer.out.paint(cells[i], r.tones[i])
		}
	}
	return e.printer.screen.gatherOutput([]byte(e.headerLine() + strings.Join(cells, "\t") + "\n"))
}

func (e *tabEncoder) closeDocument(ending) error {
	if err := e.printer.screen.gatherOutput([]byte(e.headerLine())); err != nil {
		return err
	}
	return e.flushRows()
}

// csvEncoder writes RFC 4180 quoting with a header of keys and "\n" line ends.
type csvEncoder struct {
	printer *Printer
	columns []heading
	begun   bool
	written bytes.Buffer // by rows, not gathered yet
	rows    *csv.Writer
	cells   []string // of the last row
}

func newCSV(p *Printer, columns []heading) *csvEncoder {
	e := &csvEncoder{printer: p, columns: columns, cells: make([]string, len(columns))}
	e.rows = csv.NewWriter(&e.written)
	return e
}

func (*csvEncoder) selection() want    { return wantValues }
func (e *csvEncoder) flushRows() error { return e.printer.screen.flushOutput() }

func (e *csvEncoder) addRecord(r record) error {
	for i, v := range r.values {
		e.cells[i] = csvCell(shapeValue(v))
	}
	return e.writeRows(e.cells)
}

func (e *csvEncoder) closeDocument(ending) error {
	if !e.begun {
		if err := e.writeRows(); err != nil {
			return err
		}
	}
	return e.flushRows()
}

func (e *csvEncoder) writeRows(rows ...[]string) error {
	if !e.begun {
		e.begun = true
		names := make([]string, len(e.columns))
		for i, c := range e.columns {
			names[i] = c.name
		}
		rows = append([][]string{names}, rows...)
	}
	defer e.written.Reset()
	if err := e.rows.WriteAll(rows); err != nil {
		return err
	}
	return e.printer.screen.gatherOutput(e.written.Bytes())
}

// csvCell keeps spreadsheets from running text as a formula: text that starts with
// = + - @, a tab or a carriage return gets a single quote. Numbers stay numbers.
func csvCell(v any) string {
	text := machineText(v)
	_, isNumber := asNumber(v)
	if !isNumber && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + Escape(text)
	}
	return Escape(text)
}

// stream writes a list as one JSON document while its items arrive.
type stream struct {
	printer *Printer
	schema  string
	columns []heading
	items   int
	scratch []byte
}

func newStream(p *Printer, schema string, columns []heading) *stream {
	return &stream{printer: p, schema: schema, columns: columns}
}

func (*stream) selection() want    { return wantValues }
func (s *stream) flushRows() error { return s.printer.screen.flushOutput() }

func (s *stream) addRecord(r record) error {
	b := s.openDocument(s.scratch[:0])
	b = appendSeparator(b, s.items, 2)
	s.items++
	s.scratch = appendRecord(b, s.columns, r, 2)
	return s.printer.screen.gatherOutput(s.scratch)
}

// appendRecord is appendJSON of the object that a record makes.
func appendRecord(dst []byte, columns []heading, r record, level int) []byte {
	dst = append(dst, '{')
	for i, c := range columns {
		dst = appendSeparator(dst, i, deeperLevel(level))
		if dst = append(dst, c.key...); level != compact {
			dst = append(dst, ' ')
		}
		dst = appendJSON(dst, r.values[i], deeperLevel(level))
	}
	return append(appendNewline(dst, level), '}')
}

// openDocument begins the document before the first item.
func (s *stream) openDocument(b []byte) []byte {
	if s.items > 0 {
		return b
	}
	b = append(appendNewline(append(b, '{'), 1), `"schema": `...)
	b = append(appendString(b, s.schema), ',')
	return append(appendNewline(b, 1), `"items": [`...)
}

func (s *stream) closeDocument(e ending) error {
	b := s.openDocument(s.scratch[:0])
	if s.items > 0 {
		b = appendNewline(b, 1)
	}
	b = append(b, ']')
	for _, f := range s.printer.closingFields(e) {
		b = appendSeparator(append(b, ','), 0, 1)
		b = appendKey(b, f.Key, 1)
		b = appendJSON(b, f.Value, 1)
	}
	return s.printer.writeStdout(append(b, "\n}\n"...), nil)
}

func (p *Printer) closingFields(e ending) Fields {
	fields := Fields{{"complete", !e.incomplete}, {"truncated", e.truncated}}
	fields = append(fields, e.extra...)
	return append(fields, Field{"errors", p.errorObjects(e.errs)}, Field{"interrupted", wasInterrupted(e.errs)})
}

// collector gathers a list for the formats that need all of it at once.
type collector struct {
	printer *Printer
	schema  string
	columns []heading
	items   []any
}

func (*collector) selection() want  { return wantValues }
func (*collector) flushRows() error { return nil }

func (c *collector) addRecord(r record) error {
	c.items = append(c.items, recordObject(c.columns, r))
	return nil
}

func (c *collector) closeDocument(e ending) error {
	items := c.items
	if items == nil {
		items = []any{}
	}
	document := append(Fields{{"schema", c.schema}, {"items", items}}, c.printer.closingFields(e)...)
	return c.printer.writeStdout(c.printer.renderDocument(document))
}

// lineEncoder writes ndjson.
type lineEncoder struct {
	printer *Printer
	columns []heading
	items   int
	scratch []byte
}

func (*lineEncoder) selection() want    { return wantValues }
func (e *lineEncoder) flushRows() error { return e.printer.screen.flushOutput() }

func (e *lineEncoder) addRecord(r record) error {
	e.items++
	e.scratch = append(appendRecord(e.scratch[:0], e.columns, r, compact), '\n')
	return e.printer.screen.gatherOutput(e.scratch)
}

func (e *lineEncoder) closeDocument(end ending) error {
	return e.printer.writeStdout(e.printer.appendSummary(nil, e.items, end), nil)
}
