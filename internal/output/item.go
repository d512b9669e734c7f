package output

import (
	"cmp"
	"errors"

	"sbx/internal/fault"
)

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
	if spec.Aside != nil && p.writesAside() {
		for _, line := range spec.Aside(item) {
			p.Note(line)
		}
		if err := p.screen.flushOutput(); err != nil && !errors.Is(err, ErrClosed) { // of what a program has said
			return cmp.Or(verdict, err)
		}
		return verdict
	}
	columns, err := chooseColumns(spec.Columns, p.Columns, p.Format.columnLevel())
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
	object := make(Fields, len(columns))
	for i, c := range columns {
		object[i] = Field{c.Name, shapeValue(c.Value(item))}
	}
	end := ending{errs: errs, code: fault.ExitCode(verdict)}
	return p.concludeList(errs, verdict, p.writeDocument(spec.Schema, Fields{{"item", object}}, []any{object}, end))
}

func showRow[T any](p *Printer, spec ItemSpec[T], item T, verdict error, errs []error) error {
	list, err := NewList(p, ListSpec[T]{Schema: spec.Schema, Columns: spec.Columns})
	if err != nil {
		return err
	}
	list.errs = errs
	if err := list.Add(item); err != nil {
		return list.CloseAs(verdict)
	}
	return list.CloseAs(verdict)
}

func showSheet[T any](p *Printer, spec ItemSpec[T], columns []Column[T], item T) error {
	sheet := &Sheet{}
	switch {
	case spec.Line != nil:
		return p.Line(spec.Line(item))
	case spec.Human != nil && len(p.Columns) == 0:
		spec.Human(sheet, item)
	default:
		for _, c := range columns {
			value := c.Value(item)
			if c.Text != nil && p.tty {
				value = c.Text(item)
			}
			sheet.Field(c.Name, value)
		}
	}
	return p.writeStdout(sheet.renderPage(p.pageView()))
}
