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
	// Screen are the columns of the table on a terminal, for a table that people read in another
	// order or with other words than programs do; nil = Columns. --columns asks for Columns.
	Screen []Column[T]
	// Order gives the words by which the table on a terminal is sorted, as far as its rows come together; other
	// formats have the order in which items were added. Nil = that order everywhere.
	Order func(T) string
	Empty string         // what an empty list teaches, on stderr in the text formats
	Line  func(T) string // instead of the table: one line of running text per item; --columns asks for the table again
	// WideLine is Line in the format wide, and in a table that was asked for by name; nil = Line.
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
type List[T any] struct{ *list }

// list is a List whose type of item is erased, so that one copy of the code prints every type. An
// item is passed as a pointer to it.
type list struct {
	printer *Printer
	spec    listSpec
	columns []column
	encoder encoder
	ref     []column // what -o name prints
	remarks []string
	paged   []any // of human, until the page is made
	values  []any // of the last record that wants no more
	items   int
	done    bool // something succeeded
	errs    []error
	end     ending
	failed  error // of writing
}

// listSpec is a ListSpec without its type of item.
type listSpec struct {
	schema          string
	columns, screen []column
	empty           string
	human           func(s *Sheet, items []any)

	line, wideLine, aside, order func(any) string
}

func (s ListSpec[T]) erased() listSpec {
	out := listSpec{
		schema: s.Schema, columns: erasedColumns(s.Columns), screen: erasedColumns(s.Screen), empty: s.Empty,
		line: erasedFunc(s.Line), wideLine: erasedFunc(s.WideLine), aside: erasedFunc(s.Aside), order: erasedFunc(s.Order),
	}
	if s.Human != nil {
		out.human = func(sheet *Sheet, items []any) {
			all := make([]T, len(items))
			for i, item := range items {
				all[i] = typed[T](item)
			}
			s.Human(sheet, all)
		}
	}
	return out
}

// typed is an item of which a list has the address.
func typed[T any](item any) T {
	at, _ := item.(*T)
	return *at
}

// erasedFunc reads an item of which a list has the address; nil stays nil.
func erasedFunc[T, R any](read func(T) R) func(any) R {
	if read == nil {
		return nil
	}
	return func(item any) R { return read(typed[T](item)) }
}

// record is one item on its way to an encoder; texts, tones, line and name are there
// where the encoder asks for them. An encoder that wants values alone keeps none of
// them: the next record has the same slice.
type record struct {
	values []any
	texts  []string
	tones  []Tone
	order  string // of a table, the words that sort it
	line   string
	name   string
}

// NewList opens a list. The error is an unknown name in --columns; nothing has been
// written then.
func NewList[T any](p *Printer, spec ListSpec[T]) (*List[T], error) {
	l, err := newList(p, spec.erased())
	if err != nil {
		return nil, err
	}
	return &List[T]{l}, nil
}

func newList(p *Printer, spec listSpec) (*list, error) {
	from := spec.columns
	if spec.screen != nil && p.out.tty && p.Format.Human() && len(p.Columns) == 0 {
		from = spec.screen
	}
	columns, err := chooseColumns(from, p.Columns, p.Format.columnLevel())
	if err != nil {
		return nil, err
	}
	l := &list{printer: p, spec: spec, columns: columns, ref: referenceColumn(spec.columns)}
	l.encoder = newEncoder(p, spec.schema, columnHeadings(columns), spec.line != nil && len(p.Columns) == 0, spec.order != nil)
	return l, nil
}

// referenceColumn is what -o name prints: the column "ref", else the first one.
func referenceColumn(columns []column) []column {
	i := max(slices.IndexFunc(columns, func(c column) bool { return c.name == "ref" }), 0)
	return columns[i:min(i+1, len(columns))]
}

func columnHeadings(columns []column) []heading {
	out := make([]heading, len(columns))
	for i, c := range columns {
		out[i] = heading{name: c.name, key: string(appendKey(nil, c.name, compact)), title: c.title, spare: c.spare || c.level == Wide, whole: c.whole, keep: c.keep}
	}
	return out
}

// Add adds an item that was done or found. The error is that of stdout: ErrClosed, or a failed
// write.
func (l *List[T]) Add(item T) error {
	l.done = true
	return l.putItem(&item)
}

// AddReused is Add for an item that the caller overwrites with the next one.
func (l *List[T]) AddReused(item *T) error {
	l.done = true
	if l.isPage() { // it holds the items
		item = new(*item)
	}
	return l.putItem(item)
}

// AddFailed adds an item that did not succeed, with its error. The list stays complete.
func (l *List[T]) AddFailed(item T, err error) error { return l.putFailed(&item, err) }

// AddResult is Add, or AddFailed where err is not nil. Close gives the error of stdout.
func (l *List[T]) AddResult(item T, err error) {
	if err != nil {
		_ = l.AddFailed(item, err)
		return
	}
	_ = l.Add(item)
}

func (l *list) putFailed(item any, err error) error {
	if !l.writesAside() || l.printer.Quiet { // else its note says it
		l.errs = append(l.errs, err)
	}
	return l.putItem(item)
}

// SortErrors brings the errors so far into the order in which they are printed.
func (l *list) SortErrors(compare func(a, b error) int) { slices.SortStableFunc(l.errs, compare) }

func (l *list) putItem(item any) error {
	l.items++
	if l.writesAside() {
		if text := l.spec.aside(item); text != "" {
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

func (l *list) writesAside() bool { return l.spec.aside != nil && l.printer.writesAside() }

// Say writes a line of running text ahead of an item of which there is something to
// say before it is known as a whole; only where the items are running text, too. Any
// goroutine may call it.
func (l *list) Say(text string) {
	if l.encoder.selection() == wantLine {
		_ = l.printer.Line(text) // the next write reports a closed stdout
	}
}

// WhenEmpty changes what an empty list says, where what was learnt meanwhile makes that
// of the spec untrue.
func (l *list) WhenEmpty(text string) { l.spec.empty = text }

// Remark is printed on stderr when the list is closed, in the formats whose documents have no
// place for it; "" is nothing.
func (l *list) Remark(text string) {
	if text != "" {
		l.remarks = append(l.remarks, text)
	}
}

// isPage says that people get one page instead of a table.
func (l *list) isPage() bool {
	p := l.printer
	return l.spec.human != nil && p.out.tty && p.Format.Human() && len(p.Columns) == 0
}

func (l *list) finishDocument() error {
	if !l.isPage() {
		return l.encoder.closeDocument(l.end)
	}
	sheet := &Sheet{}
	if l.items > 0 {
		l.spec.human(sheet, l.paged)
	}
	return l.printer.writeStdout(sheet.renderPage(l.printer.pageView()))
}

func (l *list) itemRecord(item any) record {
	switch l.encoder.selection() {
	case wantName:
		var name string
		for _, v := range readValues(nil, l.ref, item) {
			name = machineText(shapeValue(v))
		}
		return record{name: name}
	case wantLine:
		return record{line: l.itemLine(item)}
	case wantCells:
		return l.itemCells(item)
	case wantValues:
	}
	l.values = readValues(l.values[:0], l.columns, item)
	return record{values: l.values}
}

func (l *list) itemLine(item any) string {
	if l.spec.wideLine != nil && (l.printer.Format.Name() == WideTable || l.printer.Format.laidOutInPipe()) {
		return l.spec.wideLine(item)
	}
	return l.spec.line(item)
}

func (l *list) itemCells(item any) record {
	now, out := l.printer.now(), l.printer.out
	r := record{values: readValues(nil, l.columns, item), texts: make([]string, len(l.columns)), tones: make([]Tone, len(l.columns))}
	for i, c := range l.columns {
		r.texts[i], r.tones[i] = c.cell(item, r.values[i], out, now)
	}
	if l.spec.order != nil {
		r.order = l.spec.order(item)
	}
	return r
}

// Fail records that a part of the list is missing: a provider that could not be listed, a
// signal. The list is not complete then. ErrClosed and nil are ignored.
func (l *list) Fail(err error) {
	if err == nil || errors.Is(err, ErrClosed) {
		return
	}
	l.errs = append(l.errs, err)
	l.end.incomplete = true
}

// Succeeded records that a part without items is done, so that the failure of
// another part is fault.KindPartial.
func (l *list) Succeeded() { l.done = true }

// Truncated records that --limit left items out. It does not make the list incomplete.
func (l *list) Truncated() { l.end.truncated = true }

// Incomplete records that items may be missing although nothing failed.
func (l *list) Incomplete() { l.end.incomplete = true }

// Set adds top-level keys to this document, such as "total" or "run_id": those of a struct, as
// FieldsOf reads them. In ndjson they are part of the summary. Text formats ignore them.
func (l *list) Set(keys any) { l.end.extra = append(l.end.extra, FieldsOf(keys)...) }

// Flush shows what has been added so far. The widths of a table are fixed by the
// first Flush.
func (l *list) Flush() error {
	if l.failed == nil && !l.isPage() {
		l.failed = l.encoder.flushRows()
	}
	return l.failed
}

// Close ends the document and returns the error that decides the exit code:
// nil, the failure, or the joined failures. It is a ShownError, or ErrClosed.
func (l *list) Close() error { return l.CloseAs(decisiveError(l.errs, l.done)) }

// CloseAs is Close where the caller knows the error that decides the exit code.
func (l *list) CloseAs(verdict error) error {
	p := l.printer
	if l.items == 0 && fault.KindOf(verdict) == fault.KindUsage {
		p.Report(verdict)
		return reportedError(verdict)
	}
	l.end.errs, l.end.code = l.errs, fault.ExitCode(verdict)
	if l.failed == nil && !l.writesAside() {
		l.failed = l.finishDocument()
	}
	closed := errors.Is(l.failed, ErrClosed) // a pager that quits ends in silence
	for _, text := range l.remarks {
		if !closed && !p.Format.Structured() {
			p.Note(text)
		}
	}
	if l.writesAside() {
		p.printErrors(slices.DeleteFunc(l.errs, func(err error) bool { return err == verdict })) //nolint:errorlint // it is told once, at the end
		return verdict
	}
	if !closed && l.items == 0 && len(l.errs) == 0 && l.spec.empty != "" && !p.Format.Structured() {
		p.Note(l.spec.empty)
	}
	return p.concludeList(l.errs, verdict, l.failed)
}
