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

// encoder writes the records of one list in one format. What add writes may wait a
// moment for more; flush and close leave nothing waiting.
type encoder interface {
	selection() want
	addRecord(r record) error
	flushRows() error
	closeDocument(e ending) error
}

// heading is a column without its type.
type heading struct {
	name  string
	title string
	spare bool
}

func newEncoder(p *Printer, schema string, columns []heading, lines bool) encoder { //nolint:ireturn // one of a closed set
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
		case p.tty:
			return newGrid(p, columns)
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

func (*tabEncoder) selection() want    { return wantValues }
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
}

func newCSV(p *Printer, columns []heading) *csvEncoder {
	return &csvEncoder{printer: p, columns: columns}
}

func (*csvEncoder) selection() want    { return wantValues }
func (e *csvEncoder) flushRows() error { return e.printer.screen.flushOutput() }

func (e *csvEncoder) addRecord(r record) error {
	cells := make([]string, len(r.values))
	for i, v := range r.values {
		cells[i] = csvCell(shapeValue(v))
	}
	return e.writeRows(cells)
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
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return err
	}
	return e.printer.screen.gatherOutput(b.Bytes())
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
