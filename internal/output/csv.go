package output

import (
	"bytes"
	"encoding/csv"
	"strings"
)

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
