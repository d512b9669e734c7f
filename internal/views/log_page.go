package views

import (
	"slices"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// LogPageOptions say how a log is shown.
type LogPageOptions struct {
	Raw      bool // bytes as they are
	Patterns bool // with what each line means
	Follow   bool // each line at once
	Chosen   bool // a filter or limit left lines out
}

// LogPage shows the lines of a log as they are read, and says once where they come from.
type LogPage struct {
	printer *output.Printer
	list    *output.List[LogRow]
	o       LogPageOptions
	sources []string
	cut     bool // a line was not whole
}

// NewLogPage begins a page.
func NewLogPage(p *output.Printer, schema string, o LogPageOptions) (*LogPage, error) {
	spec := output.ListSpec[LogRow]{Schema: schema, Columns: LogColumns(), Line: func(r LogRow) string { return r.Text }}
	if o.Patterns && !o.Raw {
		spec.Line = LogRow.Explained
	}
	spec.WideLine = func(r LogRow) string { return r.Origin() + spec.Line(r) }
	list, err := output.NewList(p, spec)
	return &LogPage{printer: p, list: list, o: o}, err
}

// Add shows an item of ops.Logs. The error is that of stdout.
func (g *LogPage) Add(item any) error {
	switch i := item.(type) {
	case ops.LogFound:
		g.list.WhenEmpty(g.emptyText(i.Ref))
	case ops.LogLine:
		return g.addRow(LogRow(i))
	case ops.LogGap:
		g.list.Truncated()
		g.list.Incomplete()
		g.list.WhenEmpty("none of its output is kept")
		g.printer.Note(MissingOutput(i.Line))
	case error:
		g.list.Fail(i)
	}
	return nil
}

func (g *LogPage) emptyText(ref sandbox.Ref) string {
	switch {
	case g.o.Raw:
		return "" // raw lines pass the list by
	case g.o.Chosen:
		return ref.String() + ": no such lines"
	}
	return ref.String() + ": it has written nothing"
}

func (g *LogPage) addRow(r LogRow) error {
	g.noteOrigin(r.LogLine)
	if g.o.Raw {
		g.list.Succeeded()
		_, err := g.printer.Stdout().Write([]byte(r.Text + "\n"))
		return err
	}
	if err := g.list.Add(r); err != nil || !g.o.Follow {
		return err
	}
	return g.list.Flush()
}

// noteOrigin names, once each, a source that is not the provider, and that lines are cut.
func (g *LogPage) noteOrigin(line sandbox.LogLine) {
	if line.Source != "" && !slices.Contains(g.sources, line.Source) {
		g.sources = append(g.sources, line.Source)
		g.printer.Note("these lines come from " + line.Source + ", not from the provider")
	}
	if line.Truncated && !g.cut {
		g.cut = true
		g.list.Truncated()
		g.printer.Note("some lines are not whole: they were longer than is kept, or what stood beside them is missing")
	}
}

// Close ends the page with how much of the log is missing.
func (g *LogPage) Close(r *ops.LogsResult) error {
	g.list.Set("missing_lines", r.MissingLines)
	g.list.Set("missing_bytes", r.MissingBytes)
	return g.list.Close()
}
