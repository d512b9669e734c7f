package output

import "bufio"

// streamBuffer gathers small items into few writes.
const streamBuffer = 32 << 10

// stream writes a list as one JSON document while its items arrive; it holds
// no item back beyond its buffer.
type stream struct {
	printer *Printer
	out     *bufio.Writer
	schema  string
	columns []heading
	items   int
	scratch []byte
}

func newStream(p *Printer, schema string, columns []heading) *stream {
	return &stream{printer: p, out: bufio.NewWriterSize(p.screen, streamBuffer), schema: schema, columns: columns}
}

func (*stream) wants() want    { return wantValues }
func (s *stream) flush() error { return s.out.Flush() }

func (s *stream) add(r record) error {
	b := s.open(s.scratch[:0])
	b = separate(b, s.items, 2)
	s.items++
	b = append(b, '{')
	for i, c := range s.columns {
		b = separate(b, i, 3)
		b = appendKey(b, c.name, 2)
		b = appendJSON(b, r.values[i], 3)
	}
	b = append(newline(b, 2), '}')
	s.scratch = b
	_, err := s.out.Write(b)
	return err
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
	if _, err := s.out.Write(append(b, "\n}\n"...)); err != nil {
		return err
	}
	return s.out.Flush()
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
}

func (*lineEncoder) wants() want  { return wantValues }
func (*lineEncoder) flush() error { return nil }

func (e *lineEncoder) add(r record) error {
	e.items++
	return e.printer.write(append(appendJSON(nil, object(e.columns, r), compact), '\n'), nil)
}

func (e *lineEncoder) close(end ending) error {
	return e.printer.write(e.printer.appendSummary(nil, e.items, end), nil)
}
