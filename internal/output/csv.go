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

func (*csvEncoder) wants() want    { return wantValues }
func (e *csvEncoder) flush() error { return e.printer.screen.flush() }

func (e *csvEncoder) add(r record) error {
	cells := make([]string, len(r.values))
	for i, v := range r.values {
		cells[i] = csvCell(shape(v))
	}
	return e.rows(cells)
}

func (e *csvEncoder) close(ending) error {
	if !e.begun {
		if err := e.rows(); err != nil {
			return err
		}
	}
	return e.flush()
}

func (e *csvEncoder) rows(rows ...[]string) error {
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
	return e.printer.screen.gather(b.Bytes())
}

// csvCell keeps spreadsheets from running text as a formula: text that starts with
// = + - @, a tab or a carriage return gets a single quote. Numbers stay numbers.
func csvCell(v any) string {
	text := machineText(v)
	_, isNumber := number(v)
	if !isNumber && text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + Escape(text)
	}
	return Escape(text)
}
