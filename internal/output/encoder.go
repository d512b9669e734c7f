package output

import "strings"

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
	wants() want
	add(r record) error
	flush() error
	close(e ending) error
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

func object(columns []heading, r record) Fields {
	out := make(Fields, len(columns))
	for i, c := range columns {
		out[i] = Field{c.name, shape(r.values[i])}
	}
	return out
}

// textEncoder writes running text, one line per item.
type textEncoder struct{ printer *Printer }

func (textEncoder) wants() want          { return wantLine }
func (textEncoder) flush() error         { return nil }
func (textEncoder) close(ending) error   { return nil }
func (e textEncoder) add(r record) error { return e.printer.Line(r.line) }

// nameEncoder writes one REF per line and nothing else.
type nameEncoder struct{ printer *Printer }

func (nameEncoder) wants() want          { return wantName }
func (e nameEncoder) flush() error       { return e.printer.screen.flush() }
func (e nameEncoder) close(ending) error { return e.flush() }
func (e nameEncoder) add(r record) error {
	return e.printer.screen.gather([]byte(Escape(r.name) + "\n"))
}

// tabEncoder writes tab-separated lines for pipes: a header of upper-cased
// keys, then one line per item, never cut.
type tabEncoder struct {
	printer *Printer
	columns []heading
	begun   bool
}

func (*tabEncoder) wants() want    { return wantValues }
func (e *tabEncoder) flush() error { return e.printer.screen.flush() }

func (e *tabEncoder) header() string {
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

func (e *tabEncoder) add(r record) error {
	cells := make([]string, len(r.values))
	for i, v := range r.values {
		cells[i] = Escape(machineText(shape(v)))
	}
	return e.printer.screen.gather([]byte(e.header() + strings.Join(cells, "\t") + "\n"))
}

func (e *tabEncoder) close(ending) error {
	if err := e.printer.screen.gather([]byte(e.header())); err != nil {
		return err
	}
	return e.flush()
}
