package commands

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func logSpec(ref sandbox.Ref, o *logsOptions) output.ListSpec[views.LogRow] {
	spec := output.ListSpec[views.LogRow]{
		Schema: "sbx.logs/v1", Columns: views.LogColumns(), Empty: ref.String() + ": no such lines",
		Line: func(r views.LogRow) string { return r.Text },
	}
	switch {
	case o.raw:
		spec.Empty = "" // raw lines pass the list by
	case o.patterns:
		spec.Line = views.LogRow.Explained
	case !o.filters() && o.since == "":
		spec.Empty = ref.String() + ": it has written nothing"
	}
	line := spec.Line
	spec.WideLine = func(r views.LogRow) string { return r.Origin() + line(r) }
	return spec
}

// logFilter says which lines are shown and what they mean.
type logFilter struct {
	matcher  *triage.Matcher
	re       *regexp.Regexp // nil = any line
	patterns bool           // only lines with a pattern
}

func newLogFilter(o *logsOptions) (logFilter, error) {
	f := logFilter{matcher: triage.NewMatcher(), patterns: o.patterns}
	if o.grep == "" {
		return f, nil
	}
	re, err := regexp.Compile(o.grep)
	if err != nil {
		return f, fault.Usage("--grep: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: ")).WithHint(`the syntax is that of RE2 (go.dev/s/re2syntax); a backslash makes ( [ * + ? . plain`)
	}
	f.re = re
	return f, nil
}

func (f logFilter) row(line sandbox.LogLine) (views.LogRow, bool) {
	if f.re != nil && !f.re.MatchString(line.Text) {
		return views.LogRow{}, false
	}
	pattern, known := f.matcher.Match(line.Text)
	return views.LogRow{LogLine: line, Pattern: pattern}, known || !f.patterns
}

// logPage shows lines and tells once where they come from.
type logPage struct {
	printer *output.Printer
	list    *output.List[views.LogRow]
	o       *logsOptions
	sources []string
	cut     bool // a line was not whole
	gaps    []sandbox.LogGap
}

// copy reads the log to its end. The list keeps what the provider could not
// tell; what was read before that stands. The error is that of stdout.
func (g *logPage) copy(ctx context.Context, f *fleet.Fleet, ref sandbox.Ref, q providers.LogQuery, filter logFilter) error {
	progress := g.printer.Progress("reading the log of " + ref.String())
	defer progress.Done()
	last := ring[views.LogRow]{size: g.o.kept()}
	var before []gapBefore // of what the ring holds
	for line, err := range f.Logs(ctx, ref, q) {
		if err != nil {
			g.fail(ctx, err)
			continue
		}
		if line.Gap != nil {
			if last.size == 0 {
				g.missing(line)
			} else {
				before = append(before, gapBefore{line, last.added})
			}
			continue
		}
		row, shown := filter.row(line)
		switch {
		case !shown:
		case last.size > 0:
			last.add(row)
		default:
			if err := g.show(row); err != nil {
				return err
			}
		}
	}
	for _, gap := range before {
		if last.added-gap.added < last.size { // else all that was asked for comes after it
			g.missing(gap.line)
		}
	}
	for row := range last.all() {
		if err := g.show(row); err != nil {
			return err
		}
	}
	return nil
}

func (g *logPage) fail(ctx context.Context, err error) {
	if cause := ended(ctx, err); cause != nil {
		err = cause
	}
	g.list.Fail(err)
}

// show puts out one line; the error is that of stdout, which the list keeps.
func (g *logPage) show(r views.LogRow) error {
	g.tell(r.LogLine)
	if g.o.raw {
		g.list.Succeeded()
		_, err := g.printer.Stdout().Write([]byte(r.Text + "\n"))
		return err
	}
	if err := g.list.Add(r); err != nil || !g.o.follow {
		return err
	}
	return g.list.Flush()
}

// tell names, once each, a source that is not the provider, and that lines are
// cut.
func (g *logPage) tell(line sandbox.LogLine) {
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

// ring keeps the last items that were added; it grows with what there is, not
// with its size.
type ring[T any] struct {
	size  int
	next  int
	added int
	items []T
}

func (r *ring[T]) add(item T) {
	r.added++
	if len(r.items) < r.size {
		r.items = append(r.items, item)
		return
	}
	r.items[r.next] = item
	r.next = (r.next + 1) % r.size
}

// all gives the items, oldest first.
func (r *ring[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.items {
			if !yield(r.items[(r.next+i)%len(r.items)]) {
				return
			}
		}
	}
}

// missing tells of output that is not there.
func (g *logPage) missing(line sandbox.LogLine) {
	g.gaps = append(g.gaps, *line.Gap)
	g.list.Truncated()
	g.list.Incomplete()
	g.list.WhenEmpty("none of its output is kept")
	g.printer.Note(views.MissingOutput(line))
}

// sums are the keys of a log's document that say how much is missing; null = that is
// not known.
func (g *logPage) sums() {
	lines, size := new(int64), new(int64)
	for _, gap := range g.gaps {
		lines, size = views.AddKnown(lines, gap.Lines), views.AddKnown(size, gap.Bytes)
	}
	g.list.Set("missing_lines", lines)
	g.list.Set("missing_bytes", size)
}

// gapBefore is a gap before the rows that are held back for --tail.
type gapBefore struct {
	line  sandbox.LogLine
	added int // rows that came before it
}
