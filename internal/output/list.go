package output

import (
	"errors"
	"slices"

	"sbx/internal/fault"
)

// ListSpec says how a list of T is shown.
type ListSpec[T any] struct {
	Schema  string // "sbx.ls/v1"
	Columns []Column[T]
	Empty   string         // what an empty list teaches, on stderr in the text formats
	Line    func(T) string // instead of the table: one line of running text per item; --columns asks for the table again
	// WideLine is Line in the format wide; nil = Line.
	WideLine func(T) string
	// Human is instead of the table on a terminal: one page about all items,
	// shown when the list is closed. --columns asks for the table again.
	Human func(s *Sheet, items []T)
	// Aside replaces the table by one note on stderr for each item ("" = none), for a verb
	// whose stdout belongs to programs. It reports failures too. --columns asks for the table
	// again.
	Aside func(T) string
}

// List is a document to which items are added as they arrive and which is
// closed once. One goroutine uses it.
type List[T any] struct {
	printer *Printer
	spec    ListSpec[T]
	columns []Column[T]
	encoder encoder
	ref     func(T) any
	remark  string
	paged   []T   // of Human, until the page is made
	values  []any // of the last record that wants no more
	items   int
	done    bool // something succeeded
	errs    []error
	end     ending
	failed  error // of writing
}

// record is one item on its way to an encoder; texts, tones, line and name are there
// where the encoder asks for them. An encoder that wants values alone keeps none of
// them: the next record has the same slice.
type record struct {
	values []any
	texts  []string
	tones  []Tone
	line   string
	name   string
}

// NewList opens a list. The error is an unknown name in --columns; nothing has been
// written then.
func NewList[T any](p *Printer, spec ListSpec[T]) (*List[T], error) {
	columns, err := chooseColumns(spec.Columns, p.Columns, p.Format.columnLevel())
	if err != nil {
		return nil, err
	}
	l := &List[T]{printer: p, spec: spec, columns: columns, ref: referenceColumn(spec.Columns)}
	l.encoder = newEncoder(p, spec.Schema, columnHeadings(columns), spec.Line != nil && len(p.Columns) == 0)
	return l, nil
}

// referenceColumn reads what -o name prints: the column "ref", else the first one.
func referenceColumn[T any](columns []Column[T]) func(T) any {
	if len(columns) == 0 {
		return func(T) any { return nil }
	}
	i := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == "ref" })
	return columns[max(i, 0)].Value
}

func columnHeadings[T any](columns []Column[T]) []heading {
	out := make([]heading, len(columns))
	for i, c := range columns {
		out[i] = heading{name: c.Name, title: c.columnTitle(), spare: c.Spare}
	}
	return out
}

// Add adds an item that was done or found. The error is that of stdout: ErrClosed, or a failed
// write.
func (l *List[T]) Add(item T) error {
	l.done = true
	return l.putItem(item)
}

// AddFailed adds an item that did not succeed, with its error. The list stays complete.
func (l *List[T]) AddFailed(item T, err error) error {
	if !l.writesAside() || l.printer.Quiet { // else its note says it
		l.errs = append(l.errs, err)
	}
	return l.putItem(item)
}

func (l *List[T]) putItem(item T) error {
	l.items++
	if l.writesAside() {
		if text := l.spec.Aside(item); text != "" {
			l.printer.Note(text)
		}
		return nil
	}
	if l.isPage() {
		l.paged = append(l.paged, item)
		return nil
	}
	if l.failed == nil {
		l.failed = l.encoder.addRecord(l.itemRecord(item))
	}
	return l.failed
}

func (l *List[T]) writesAside() bool { return l.spec.Aside != nil && l.printer.writesAside() }

// Say writes a line of running text ahead of an item of which there is something to
// say before it is known as a whole; only where the items are running text, too. Any
// goroutine may call it.
func (l *List[T]) Say(text string) {
	if l.encoder.selection() == wantLine {
		_ = l.printer.Line(text) // the next write reports a closed stdout
	}
}

// WhenEmpty changes what an empty list says, where what was learnt meanwhile makes that
// of the spec untrue.
func (l *List[T]) WhenEmpty(text string) { l.spec.Empty = text }

// Remark is printed on stderr when the list is closed, in the formats whose documents have no
// place for it.
func (l *List[T]) Remark(text string) { l.remark = text }

// isPage says that people get one page instead of a table.
func (l *List[T]) isPage() bool {
	p := l.printer
	return l.spec.Human != nil && p.tty && p.Format.Human() && len(p.Columns) == 0
}

func (l *List[T]) finishDocument() error {
	if !l.isPage() {
		return l.encoder.closeDocument(l.end)
	}
	sheet := &Sheet{}
	if l.items > 0 {
		l.spec.Human(sheet, l.paged)
	}
	return l.printer.writeStdout(sheet.renderPage(l.printer.pageView()))
}

func (l *List[T]) itemRecord(item T) record {
	switch l.encoder.selection() {
	case wantName:
		return record{name: machineText(shapeValue(l.ref(item)))}
	case wantLine:
		return record{line: l.itemLine(item)}
	case wantCells:
		return l.itemCells(item)
	case wantValues:
	}
	l.values = l.values[:0]
	for _, c := range l.columns {
		l.values = append(l.values, c.Value(item))
	}
	return record{values: l.values}
}

func (l *List[T]) itemLine(item T) string {
	if l.spec.WideLine != nil && l.printer.Format.Name() == WideTable {
		return l.spec.WideLine(item)
	}
	return l.spec.Line(item)
}

func (l *List[T]) itemCells(item T) record {
	now := l.printer.now()
	r := record{values: make([]any, len(l.columns)), texts: make([]string, len(l.columns)), tones: make([]Tone, len(l.columns))}
	for i, c := range l.columns {
		v := c.Value(item)
		r.values[i] = v
		if c.Text != nil {
			r.texts[i] = Escape(c.Text(item))
		} else {
			r.texts[i] = Escape(humanText(v, c.Name, now))
		}
		if c.Tone != nil {
			r.tones[i] = c.Tone(item)
		} else {
			r.tones[i] = toneOf(v, c.Name)
		}
	}
	return r
}

// Fail records that a part of the list is missing: a provider that could not be listed, a
// signal. The list is not complete then. ErrClosed and nil are ignored.
func (l *List[T]) Fail(err error) {
	if err == nil || errors.Is(err, ErrClosed) {
		return
	}
	l.errs = append(l.errs, err)
	l.end.incomplete = true
}

// Succeeded records that a part without items is done, so that the failure of
// another part is fault.KindPartial.
func (l *List[T]) Succeeded() { l.done = true }

// Truncated records that --limit left items out. It does not make the list incomplete.
func (l *List[T]) Truncated() { l.end.truncated = true }

// Incomplete records that items may be missing although nothing failed.
func (l *List[T]) Incomplete() { l.end.incomplete = true }

// Set adds a top-level key of this document, such as "total" or "run_id"; in
// ndjson it is part of the summary. Text formats ignore it.
func (l *List[T]) Set(key string, value any) {
	l.end.extra = append(l.end.extra, Field{key, shapeValue(value)})
}

// Flush shows what has been added so far. The widths of a table are fixed by the
// first Flush.
func (l *List[T]) Flush() error {
	if l.failed == nil && !l.isPage() {
		l.failed = l.encoder.flushRows()
	}
	return l.failed
}

// Close ends the document and returns the error that decides the exit code:
// nil, the failure, or the joined failures. It is a ShownError, or ErrClosed.
func (l *List[T]) Close() error { return l.CloseAs(decisiveError(l.errs, l.done)) }

// CloseAs is Close where the caller knows the error that decides the exit code.
func (l *List[T]) CloseAs(verdict error) error {
	p := l.printer
	if l.items == 0 && fault.KindOf(verdict) == fault.KindUsage {
		p.Report(verdict)
		return reportedError(verdict)
	}
	l.end.errs, l.end.code = l.errs, fault.ExitCode(verdict)
	if l.failed == nil && !l.writesAside() {
		l.failed = l.finishDocument()
	}
	if l.remark != "" && !p.Format.Structured() {
		p.Note(l.remark)
	}
	if l.writesAside() {
		p.printErrors(slices.DeleteFunc(l.errs, func(err error) bool { return err == verdict })) //nolint:errorlint // it is told once, at the end
		return verdict
	}
	if l.items == 0 && len(l.errs) == 0 && l.spec.Empty != "" && !p.Format.Structured() {
		p.Note(l.spec.Empty)
	}
	return p.concludeList(l.errs, verdict, l.failed)
}
