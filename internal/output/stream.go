package output

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
		dst = appendKey(dst, c.name, level)
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

// closingFields is what follows the items of a list.
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
