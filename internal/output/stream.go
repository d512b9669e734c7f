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

func (*stream) wants() want    { return wantValues }
func (s *stream) flush() error { return s.printer.screen.flush() }

func (s *stream) add(r record) error {
	b := s.open(s.scratch[:0])
	b = separate(b, s.items, 2)
	s.items++
	s.scratch = appendRecord(b, s.columns, r, 2)
	return s.printer.screen.gather(s.scratch)
}

// appendRecord is appendJSON of the object that a record makes.
func appendRecord(dst []byte, columns []heading, r record, level int) []byte {
	dst = append(dst, '{')
	for i, c := range columns {
		dst = separate(dst, i, deeper(level))
		dst = appendKey(dst, c.name, level)
		dst = appendJSON(dst, r.values[i], deeper(level))
	}
	return append(newline(dst, level), '}')
}

// open begins the document before the first item.
func (s *stream) open(b []byte) []byte {
	if s.items > 0 {
		return b
	}
	b = append(newline(append(b, '{'), 1), `"schema": `...)
	b = append(appendString(b, s.schema), ',')
	return append(newline(b, 1), `"items": [`...)
}

func (s *stream) close(e ending) error {
	b := s.open(s.scratch[:0])
	if s.items > 0 {
		b = newline(b, 1)
	}
	b = append(b, ']')
	for _, f := range s.printer.closing(e) {
		b = separate(append(b, ','), 0, 1)
		b = appendKey(b, f.Key, 1)
		b = appendJSON(b, f.Value, 1)
	}
	return s.printer.write(append(b, "\n}\n"...), nil)
}

// closing is what follows the items of a list.
func (p *Printer) closing(e ending) Fields {
	fields := Fields{{"complete", !e.incomplete}, {"truncated", e.truncated}}
	fields = append(fields, e.extra...)
	return append(fields, Field{"errors", p.errorObjects(e.errs)}, Field{"interrupted", interrupted(e.errs)})
}

// collector gathers a list for the formats that need all of it at once.
type collector struct {
	printer *Printer
	schema  string
	columns []heading
	items   []any
}

func (*collector) wants() want  { return wantValues }
func (*collector) flush() error { return nil }

func (c *collector) add(r record) error {
	c.items = append(c.items, object(c.columns, r))
	return nil
}

func (c *collector) close(e ending) error {
	items := c.items
	if items == nil {
		items = []any{}
	}
	document := append(Fields{{"schema", c.schema}, {"items", items}}, c.printer.closing(e)...)
	return c.printer.write(c.printer.render(document))
}

// lineEncoder writes ndjson.
type lineEncoder struct {
	printer *Printer
	columns []heading
	items   int
	scratch []byte
}

func (*lineEncoder) wants() want    { return wantValues }
func (e *lineEncoder) flush() error { return e.printer.screen.flush() }

func (e *lineEncoder) add(r record) error {
	e.items++
	e.scratch = append(appendRecord(e.scratch[:0], e.columns, r, compact), '\n')
	return e.printer.screen.gather(e.scratch)
}

func (e *lineEncoder) close(end ending) error {
	return e.printer.write(e.printer.appendSummary(nil, e.items, end), nil)
}
