package views

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/ops/look"
	"sbx/internal/output"
)

// EventRow is an event of an agent; one with beats stands for all heartbeats of a run.
type EventRow struct {
	*agentlog.Event

	beats *agentlog.Beats
	diff  *string
}

// AgentEventItem is one event of an agent.
type AgentEventItem struct {
	At           *time.Time `json:"at" table:",whole"`   // When it was reported; null where that is not known.
	Turn         *int64     `json:"turn" table:",spare"` // The turn of the agent; null where the event does not say.
	Type         string     `json:"type" table:",whole"` // The type, such as agent.tool_use; empty where it is missing.
	What         string     `json:"what" table:""`       // One line: the tool and its main argument, the change of a file, the first line of a text; cut at 160 characters.
	ID           string     `json:"id"`                  // The source's id; empty where it is missing.
	SandboxID    string     `json:"sandbox_id"`          // The source's id of the sandbox; empty where it is missing.
	Source       string     `json:"source"`              // Who reported it: agent or worker; empty where it is missing.
	Tool         string     `json:"tool"`                // The tool of an event about one; empty for others.
	File         string     `json:"file"`                // The file of a change; empty for other events.
	Change       string     `json:"change"`              // created, modified or another word of the source; empty for other events.
	LinesAdded   *int64     `json:"lines_added"`         // Lines that a change adds; null where that is not known.
	LinesRemoved *int64     `json:"lines_removed"`       // Lines that a change removes; null where that is not known.
	Failed       bool       `json:"failed"`              // True: it reports an error, or an end without success.
	Diff         *string    `json:"diff"`                // With --diff, the diff of a change; null for other events.
	DiffPreview  bool       `json:"diff_preview"`        // True: the source kept the beginning of the diff only.
	Line         *int       `json:"line"`                // The line of the file; null for an event from no file.
}

// EventsKeys are the keys of events beside its items.
type EventsKeys struct {
	SkippedLines     int  `json:"skipped_lines"`      // How many lines of the file could not be read.
	FirstSkippedLine *int `json:"first_skipped_line"` // The first of them; null for none.
}

// EventColumns are the columns of an AgentEventItem.
func EventColumns() []output.Column[EventRow] {
	return output.Columns(EventRow.item,
		output.Column[EventRow]{Name: "at", Text: EventRow.clock},
		output.Column[EventRow]{Name: "type", Text: EventRow.typeText, Tone: EventRow.tone},
		output.Column[EventRow]{Name: "what", Tone: EventRow.tone},
	)
}

func (r EventRow) item() AgentEventItem {
	e := r.Event
	i := AgentEventItem{
		At: output.Time(e.At), Turn: e.Turn, Type: e.Type, What: e.What, ID: e.ID, SandboxID: e.Sandbox, Source: e.Source, Tool: e.Tool,
		File: e.Path, Change: e.Change, LinesAdded: e.Added, LinesRemoved: e.Removed, Failed: e.Failed, Diff: r.diff, DiffPreview: e.DiffPreview,
	}
	if r.beats != nil {
		i.What = r.beats.String()
	}
	if e.Line > 0 {
		i.Line = &e.Line
	}
	return i
}

// clock is the time of an event to the second, as people compare it with a log.
func (r EventRow) clock() string {
	if r.At.IsZero() {
		return "-"
	}
	return r.At.UTC().Format(time.DateTime)
}

func (r EventRow) typeText() string { return strings.TrimPrefix(r.Type, "agent.") }

func (r EventRow) tone() output.Tone {
	switch {
	case r.Failed:
		return output.Bad
	case r.IsHeartbeat():
		return output.Muted
	}
	return output.Plain
}

// EventsOptions say how a session is shown.
type EventsOptions struct {
	Diff       bool // the changes of files as diffs
	All        bool // every heartbeat
	Follow     bool // each event at once, and no heartbeat without All
	DiffLines  int  // the most lines of a diff; 0 = all
	LineLength int  // the most characters of a line of a diff; 0 = all
}

// EventsPage shows a session, and what it grows by.
type EventsPage struct {
	printer   *output.Printer
	list      *output.List[EventRow] // nil = changes are shown to people
	o         EventsOptions
	forPeople bool
	changes   int // that were shown to people
}

// NewEventsPage begins a page.
func NewEventsPage(p *output.Printer, schema string, r *look.EventsResult, o EventsOptions) (*EventsPage, error) {
	g := &EventsPage{printer: p, o: o, forPeople: p.Format.Human() && len(p.Columns) == 0}
	var err error
	if !g.o.Diff || !g.forPeople {
		g.list, err = output.NewList(p, output.ListSpec[EventRow]{Schema: schema, Columns: EventColumns(), Empty: r.Name + ": no events"})
	}
	warnOf(p, r)
	return g, err
}

// Add shows the events that r has, until ctx ends.
func (g *EventsPage) Add(ctx context.Context, r *look.EventsResult) error {
	folded := g.forPeople && !g.o.All && !g.o.Diff
	err := r.Each(ctx, folded && !g.o.Follow, func(e *agentlog.Event, beats *agentlog.Beats) error {
		switch {
		case g.list == nil:
			return g.showDiff(e)
		case folded && g.o.Follow && e.IsHeartbeat():
			return nil
		}
		row := EventRow{Event: e, beats: beats}
		if g.o.Diff && e.DiffBytes > 0 && !e.DiffLeftOut {
			row.diff = &e.Diff
		}
		return g.list.Add(row)
	})
	switch {
	case err != nil:
	case g.list == nil:
		err = g.printer.Broken()
	case g.o.Follow:
		err = g.list.Flush()
	}
	return err
}

// Close ends the page. Ended is what ended the reading; nil = its end.
func (g *EventsPage) Close(r *look.EventsResult, ended error) error {
	errs := append(slices.Clone(r.Errors), ended)
	if g.list == nil {
		if g.changes == 0 && errors.Join(errs...) == nil {
			g.printer.Note(r.Name + ": no changes of files")
		}
		return errors.Join(errs...)
	}
	for _, err := range errs {
		g.list.Fail(err)
	}
	g.list.Set(EventsKeys{r.Lost(), firstSkipped(r.Problems)})
	if r.Lost() > 0 {
		g.list.Incomplete()
	}
	g.list.Succeeded()
	return g.list.Close()
}

// showDiff prints a change below a line that names it.
func (g *EventsPage) showDiff(e *agentlog.Event) error {
	if e.Type != agentlog.FileEdited {
		return nil
	}
	if g.changes++; g.changes > 1 {
		if err := g.printer.LineTone("", output.Plain); err != nil {
			return err
		}
	}
	return showDiff(g.printer, e, g.o)
}

func showDiff(p *output.Printer, e *agentlog.Event, o EventsOptions) error {
	head := "# " + agentlog.DiffHead(e)
	if !e.At.IsZero() {
		head += ", " + e.At.UTC().Format(time.RFC3339)
	}
	if err := p.LineTone(head, output.Muted); err != nil {
		return err
	}
	lines, left := agentlog.DiffLines(e.Diff, o.DiffLines)
	for line := range lines {
		if err := p.LineTone(cutLine(line, o.LineLength), diffTone(line)); err != nil {
			return err
		}
	}
	if left > 0 {
		return p.LineTone(fmt.Sprintf("# %d more lines; -v shows all", left), output.Muted)
	}
	return nil
}

// cutLine is a line in at most most characters, with how many are left out.
func cutLine(line string, most int) string {
	if most <= 0 || len(line) <= most {
		return line
	}
	runes := []rune(line)
	if len(runes) <= most {
		return line
	}
	return fmt.Sprintf("%s... (%d more characters; -v shows all)", string(runes[:most]), len(runes)-most)
}

func diffTone(line string) output.Tone {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "@@"):
		return output.Muted
	case strings.HasPrefix(line, "+"):
		return output.Good
	case strings.HasPrefix(line, "-"):
		return output.Bad
	}
	return output.Plain
}

func warnOf(p *output.Printer, r *look.EventsResult) {
	for _, text := range r.Warnings() {
		p.Warn(r.Name + ": " + text)
	}
}

// firstSkipped is the first line that could not be read.
func firstSkipped(p agentlog.Problems) *int {
	first := 0
	for _, line := range []int{p.Unreadable.First, p.TooLong.First, p.CutLine} {
		if line > 0 && (first == 0 || line < first) {
			first = line
		}
	}
	if first == 0 {
		return nil
	}
	return &first
}

// countText is "12 Bash, 3 Read".
func countText(counts []agentlog.Count) string {
	parts := make([]string, len(counts))
	for i, c := range counts {
		parts[i] = fmt.Sprintf("%d %s", c.Count, cmp.Or(c.Name, "without a type"))
	}
	return strings.Join(parts, ", ")
}
