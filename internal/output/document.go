package output

import (
	"cmp"
	"context"
	"errors"

	"sbx/internal/fault"
)

// Shape is the form of a document: with "items", with one "item", or free.
type Shape int

// The shapes.
const (
	ShapeList Shape = iota
	ShapeItem
	ShapeFree
)

// Document is a result that is neither a list nor one object of a listed type.
type Document struct {
	Schema string         // "sbx.drill/v1"
	Fields Fields         // the top-level keys between "schema" and "errors"
	Human  func(s *Sheet) // what people see; nil = the fields as they are
	Wide   func(s *Sheet) // Human in the format wide; nil = Human
}

// Show prints a free document, closes it and returns the error that decides the
// exit code. Errs are what failed while it was made. Formats of rows (csv, name)
// are fault.KindUsage; a command refuses them earlier with Format.Refuse.
func (p *Printer) Show(d Document, errs ...error) error {
	return p.ShowAs(d, decisiveError(errs, len(d.Fields) > 0), errs...)
}

// ShowAs is Show where the caller knows the error that decides the exit code.
func (p *Printer) ShowAs(d Document, verdict error, errs ...error) error {
	if p.Format.Human() {
		sheet := &Sheet{}
		switch {
		case d.Wide != nil && p.Format.Name() == WideTable:
			d.Wide(sheet)
		case d.Human != nil:
			d.Human(sheet)
		default:
			sheet.addFields(d.Fields)
		}
		return p.concludeList(errs, verdict, p.writeStdout(sheet.renderPage(p.pageView())))
	}
	end := ending{errs: errs, code: fault.ExitCode(verdict)}
	line := shapeFields(d.Fields)
	return p.concludeList(errs, verdict, p.writeDocument(d.Schema, line, []any{line}, end))
}

// Failed prints the document of a command that failed before it had anything
// to show, so that stdout is one valid document in the structured formats. A
// wrong use (exit 2) leaves stdout empty.
func (p *Printer) Failed(schema string, form Shape, err error) error {
	if fault.KindOf(err) == fault.KindUsage {
		p.Report(err)
		return reportedError(err)
	}
	errs := []error{err}
	if !p.Format.Structured() {
		p.printErrors(errs)
		return reportedError(decisiveError(errs, false))
	}
	var body Fields
	switch form {
	case ShapeList:
		body = Fields{{"items", []any{}}, {"complete", false}, {"truncated", false}}
	case ShapeItem:
		body = Fields{{"item", nil}}
	case ShapeFree:
	}
	verdict := decisiveError(errs, false)
	end := ending{errs: errs, code: fault.ExitCode(verdict), incomplete: true}
	return p.concludeList(errs, verdict, p.writeDocument(schema, body, nil, end))
}

// ending is what closes a document.
type ending struct {
	errs       []error
	extra      Fields
	code       int
	incomplete bool
	truncated  bool
}

// writeDocument writes a document that is known at once: body for one document, lines
// for ndjson.
func (p *Printer) writeDocument(schema string, body Fields, lines []any, end ending) error {
	if p.Format.Name() == NDJSON {
		var out []byte
		for _, line := range lines {
			out = append(appendJSON(out, line, compact), '\n')
		}
		return p.writeStdout(p.appendSummary(out, len(lines), end), nil)
	}
	return p.writeStdout(p.renderDocument(p.withEnvelope(schema, body, end)))
}

// withEnvelope puts the schema before body and the errors behind it.
func (p *Printer) withEnvelope(schema string, body Fields, end ending) Fields {
	document := append(Fields{{"schema", schema}}, body...)
	return append(document, Field{"errors", p.errorObjects(end.errs)}, Field{"interrupted", wasInterrupted(end.errs)})
}

func (p *Printer) renderDocument(document Fields) ([]byte, error) {
	switch p.Format.Name() {
	case JSON:
		return append(appendJSON(nil, document, 0), '\n'), nil
	case YAML:
		return appendYAML(nil, document)
	case Template, TemplateFile:
		return evaluateWithin(p.Format.ctx, maxMemory, func(ctx context.Context) ([]byte, error) { return runTemplate(ctx, p.Format.template, document) })
	case JQ:
		return evaluateWithin(p.Format.ctx, maxMemory, func(ctx context.Context) ([]byte, error) { return runQuery(ctx, p.Format.query, document) })
	default:
		return nil, fault.Usage("this command has no %s output", p.Format.Name()).
			WithHint("formats: %s", FormatHelp(Table, JSON, NDJSON, YAML, Template, TemplateFile, JQ))
	}
}

// appendSummary writes the last lines of ndjson: the errors and the summary.
func (p *Printer) appendSummary(dst []byte, items int, end ending) []byte {
	errs := flattenErrors(end.errs)
	for _, err := range errs {
		line := append(Fields{{"event", "error"}}, p.errorObject(err)...)
		dst = append(appendJSON(dst, line, compact), '\n')
	}
	summary := Fields{
		{"event", "summary"},
		{"items", int64(items)},
		{"errors", int64(len(errs))},
		{"complete", !end.incomplete},
		{"exit_code", int64(end.code)},
		{"interrupted", wasInterrupted(end.errs)},
	}
	return append(appendJSON(dst, append(summary, end.extra...), compact), '\n')
}

// ItemSpec says how one object of type T is shown.
type ItemSpec[T any] struct {
	Schema  string // "sbx.inspect/v1"
	Columns []Column[T]
	Human   func(s *Sheet, item T) // what people see; nil = one line per column
	Line    func(T) string         // instead of Human: this line and nothing else
	// Aside replaces all of the above by notes on stderr, for a verb whose stdout belongs to a
	// program. --columns asks for the document again.
	Aside func(T) []string
}

// ShowItem prints one object, closes its document and returns the error that
// decides the exit code. Errs are what failed while it was gathered. Without
// an object there is Printer.Failed.
func ShowItem[T any](p *Printer, spec ItemSpec[T], item T, errs ...error) error {
	return ShowItemAs(p, spec, item, decisiveError(errs, true), errs...)
}

// ShowItemAs is ShowItem where the caller knows the error that decides the exit code.
func ShowItemAs[T any](p *Printer, spec ItemSpec[T], item T, verdict error, errs ...error) error {
	erased := itemSpec{schema: spec.Schema, columns: erasedColumns(spec.Columns), line: erasedFunc(spec.Line), aside: erasedFunc(spec.Aside)}
	if spec.Human != nil {
		erased.human = func(s *Sheet, item any) { spec.Human(s, typed[T](item)) }
	}
	return showItem(p, erased, &item, verdict, errs)
}

// itemSpec is an ItemSpec without its type of item; see list.
type itemSpec struct {
	schema  string
	columns []column
	human   func(s *Sheet, item any)
	line    func(any) string
	aside   func(any) []string
}

func showItem(p *Printer, spec itemSpec, item any, verdict error, errs []error) error {
	if spec.aside != nil && p.writesAside() {
		for _, line := range spec.aside(item) {
			p.Note(line)
		}
		if err := p.screen.flushOutput(); err != nil && !errors.Is(err, ErrClosed) { // of what a program has said
			return cmp.Or(verdict, err)
		}
		return verdict
	}
	columns, err := chooseColumns(spec.columns, p.Columns, p.Format.columnLevel())
	if err != nil {
		p.Report(err)
		return reportedError(err)
	}
	if p.Format.Name() == CSV || p.Format.Name() == NameOnly {
		return showRow(p, spec, item, verdict, errs)
	}
	if p.Format.Human() {
		return p.concludeList(errs, verdict, showSheet(p, spec, columns, item))
	}
	object := recordObject(columnHeadings(columns), record{values: readValues(nil, columns, item)})
	end := ending{errs: errs, code: fault.ExitCode(verdict)}
	return p.concludeList(errs, verdict, p.writeDocument(spec.schema, Fields{{"item", object}}, []any{object}, end))
}

func showRow(p *Printer, spec itemSpec, item any, verdict error, errs []error) error {
	l, err := newList(p, listSpec{schema: spec.schema, columns: spec.columns})
	if err != nil {
		return err
	}
	l.errs = errs
	l.done = true
	_ = l.putItem(item) // CloseAs gives the error of stdout
	return l.CloseAs(verdict)
}

func showSheet(p *Printer, spec itemSpec, columns []column, item any) error {
	sheet := &Sheet{}
	switch {
	case spec.line != nil:
		return p.Line(spec.line(item))
	case spec.human != nil && len(p.Columns) == 0:
		spec.human(sheet, item)
	default:
		for i, value := range readValues(nil, columns, item) {
			c := columns[i]
			if c.text != nil && p.out.tty {
				value = c.text(item)
			}
			sheet.Field(c.name, value)
		}
	}
	return p.writeStdout(sheet.renderPage(p.pageView()))
}
