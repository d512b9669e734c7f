package views

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// LogRow is one line with what is known about it.
type LogRow look.LogLine

// LogItem is one line of output.
type LogItem struct {
	At      *time.Time `json:"at" table:""`      // When it was written; null where the provider does not say.
	Stream  string     `json:"stream" table:""`  // stdout or stderr; empty where the provider does not say.
	Line    string     `json:"line" table:""`    // The text.
	Pattern string     `json:"pattern" table:""` // The known pattern that the line shows; empty for none.
}

// LogKeys are the keys of logs beside its items.
type LogKeys struct {
	MissingLines *int64 `json:"missing_lines"` // How many lines are no longer kept; null where that is not known.
	MissingBytes *int64 `json:"missing_bytes"` // How many bytes are no longer kept; null where that is not known.
}

// LogColumns are the columns of a LogItem.
func LogColumns() []output.Column[LogRow] { return output.Columns(LogRow.item) }

func (r LogRow) item() LogItem { return LogItem{output.Time(r.At), r.Stream, r.Text, r.Pattern.ID} }

// Explained is a line with the meaning of the pattern that it shows.
func (r LogRow) Explained() string { return "[" + r.Pattern.ID + ": " + r.Pattern.Say + "] " + r.Text }

// Origin is the time, to the millisecond, and the stream of a line.
func (r LogRow) Origin() string {
	at := strings.Repeat(" ", len(logTime)-1) + "-"
	if !r.At.IsZero() {
		at = r.At.UTC().Format(logTime)
	}
	return at + "  " + r.Stream + strings.Repeat(" ", max(0, len("stdout")-len(r.Stream))) + "  "
}

// logTime has a fixed width, so that lines align.
const logTime = "2006-01-02T15:04:05.000Z"

// MissingOutput is a gap in words: why, and how much.
func MissingOutput(line sandbox.LogLine) string {
	var parts []string
	if n := line.Gap.Lines; n != nil {
		parts = append(parts, strconv.FormatInt(*n, 10)+" lines")
	}
	if n := line.Gap.Bytes; n != nil {
		parts = append(parts, sizeText(*n))
	}
	if len(parts) == 0 {
		return line.Text
	}
	return line.Text + ": " + strings.Join(parts, ", ") + " missing"
}

func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return strconv.FormatInt(bytes, 10) + " bytes"
	}
	return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
}

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
	cut     bool              // a line was not whole
	shown   map[string]string // by stream, the beginning of a line that has not ended
}

// NewLogPage begins a page.
func NewLogPage(p *output.Printer, schema string, o LogPageOptions) (*LogPage, error) {
	spec := output.ListSpec[LogRow]{Schema: schema, Columns: LogColumns(), Line: func(r LogRow) string { return r.Text }}
	if o.Patterns && !o.Raw {
		spec.Line = LogRow.Explained
	}
	spec.WideLine = func(r LogRow) string { return r.Origin() + spec.Line(r) }
	list, err := output.NewList(p, spec)
	return &LogPage{printer: p, list: list, o: o, shown: map[string]string{}}, err
}

// Add shows an item of look.Logs. The error is that of stdout.
func (g *LogPage) Add(item any) error {
	switch i := item.(type) {
	case look.LogFound:
		g.list.WhenEmpty(g.emptyText(i.Ref))
	case look.LogLine:
		return g.addRow(LogRow(i))
	case look.LogGap:
		g.list.Truncated()
		g.list.Incomplete()
		g.list.WhenEmpty("its output is not kept")
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
	return ref.String() + ": no output yet"
}

func (g *LogPage) addRow(r LogRow) error {
	g.noteOrigin(r.LogLine)
	rest, again := g.withoutShown(r.LogLine)
	r.Text = rest
	if g.o.Raw {
		g.list.Succeeded()
		if r.OpenBytes == 0 {
			rest += "\n"
		}
		_, err := g.printer.Stdout().Write([]byte(rest))
		return err
	}
	if again && rest == "" {
		return nil
	}
	if err := g.list.Add(r); err != nil || !g.o.Follow {
		return err
	}
	return g.list.Flush()
}

// withoutShown is the text of a line without its beginning that was shown before it ended, and
// whether there was one.
func (g *LogPage) withoutShown(l sandbox.LogLine) (rest string, again bool) {
	shown := g.shown[l.Stream]
	if l.OpenBytes > 0 {
		g.shown[l.Stream] = shown + l.Text
		return l.Text, false
	}
	delete(g.shown, l.Stream)
	if shown == "" || strings.HasPrefix(shown, l.Text) { // a line that was shown to its end, or is truncated
		return strings.TrimPrefix(l.Text, shown), shown != ""
	}
	return strings.CutPrefix(l.Text, shown)
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
		g.printer.Note("some lines are incomplete: they were too long, or output next to them is missing")
	}
}

// Close ends the page with how much of the log is missing.
func (g *LogPage) Close(r *look.LogsResult) error {
	g.list.Set(LogKeys{r.MissingLines, r.MissingBytes})
	return g.list.Close()
}
