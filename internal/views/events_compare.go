package views

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/agentlog"
	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// EventsCompareItem is what differs between the work of two sessions.
type EventsCompareItem struct {
	Same      bool                 `json:"same" table:""`       // True: both did the same work, as far as it can be read.
	Complete  bool                 `json:"complete" table:""`   // False: a part of one session could not be read.
	Headline  string               `json:"headline" table:""`   // The first difference in a sentence.
	DivergeAt *DivergenceItem      `json:"diverge_at" table:""` // The first event of the work that differs; null for none.
	ActsAt    *DivergenceItem      `json:"acts_at" table:""`    // The first tool use, change of a file or end that differs; null for none.
	A         ComparedItem         `json:"a" table:""`          // The first session.
	B         ComparedItem         `json:"b" table:""`          // The second session.
	Files     []FileDifferenceItem `json:"files" table:""`      // Files that both changed, with different lines or diffs.
}

// DivergenceItem is the place where two sessions go apart.
type DivergenceItem struct {
	Number int             `json:"number"` // Of the compared events, from 1.
	A      *AgentEventItem `json:"a"`      // The event of the first session; null where it has ended before.
	B      *AgentEventItem `json:"b"`      // The event of the second session; null where it has ended before.
}

// ComparedItem is one of two sessions.
type ComparedItem struct {
	WorkEvents int            `json:"work_events"` // How many events are compared: all but heartbeats and waits.
	OnlyTools  []string       `json:"only_tools"`  // Uses of tools that it alone has, each with its main argument, in their order.
	OnlyFiles  []string       `json:"only_files"`  // Files that it alone changed.
	Stats      EventStatsItem `json:"stats"`       // Its figures.
}

// FileDifferenceItem is a file that both changed differently.
type FileDifferenceItem struct {
	File string         `json:"file"` // Its path.
	A    FileChangeItem `json:"a"`    // Its changes in the first session.
	B    FileChangeItem `json:"b"`    // Its changes in the second session.
}

// EventsCompareColumns are the columns of an EventsCompareItem.
func EventsCompareColumns() []output.Column[*look.EventsComparison] {
	return output.Columns(eventsCompareItem)
}

func eventsCompareItem(c *look.EventsComparison) EventsCompareItem {
	i := EventsCompareItem{
		Same: c.Same(), Complete: c.Whole(), Headline: compareHeadline(c), DivergeAt: divergenceItem(c.Diverge), ActsAt: divergenceItem(c.Acts), Files: []FileDifferenceItem{},
		A: comparedItem(c, 0), B: comparedItem(c, 1),
	}
	for _, f := range c.Files {
		i.Files = append(i.Files, FileDifferenceItem{f.Path, fileChangeItem(f.A), fileChangeItem(f.B)})
	}
	return i
}

func divergenceItem(d *agentlog.Divergence) *DivergenceItem {
	if d == nil {
		return nil
	}
	item := func(e *agentlog.Event) *AgentEventItem {
		if e == nil {
			return nil
		}
		return new(EventRow{Event: e}.item())
	}
	return &DivergenceItem{d.N, item(d.A), item(d.B)}
}

func comparedItem(c *look.EventsComparison, n int) ComparedItem {
	return ComparedItem{
		WorkEvents: c.Work[n], OnlyTools: append([]string{}, c.OnlyTools[n]...), OnlyFiles: append([]string{}, c.OnlyFiles[n]...),
		Stats: sessionOf([]agentlog.Stats{c.A, c.B}[n], c.Sessions[n]).item(),
	}
}

// compareHeadline is "diverge at event 7,312: A ran Bash go test, B edited main.go +1".
func compareHeadline(c *look.EventsComparison) string {
	switch unread := joinKnown(", ", unreadText("A", c.Sessions[0]), unreadText("B", c.Sessions[1])); {
	case !c.Same():
		return joinKnown("; ", divergenceText(c.Diverge), unread)
	case unread != "":
		return fmt.Sprintf("same work as far as it can be read: %s events; %s", thousands(c.Work[0]), unread)
	case c.NoAgents:
		return fmt.Sprintf("no agent has reported what it did; the lives of both sandboxes are alike: %s events", thousands(c.Work[0]))
	}
	return fmt.Sprintf("same work: %s events", thousands(c.Work[0]))
}

// unreadText is "1 line of A is left out"; "" = all of the session was read.
func unreadText(name string, r *look.EventsResult) string {
	switch lost := r.Lost(); {
	case lost == 1:
		return "1 line of " + name + " is left out"
	case lost > 1:
		return fmt.Sprintf("%s lines of %s are left out", thousands(lost), name)
	case !r.Whole():
		return "a source of " + name + " could not be read"
	}
	return ""
}

func divergenceText(d *agentlog.Divergence) string {
	if a, b := didText(d.A), didText(d.B); a == b {
		return fmt.Sprintf("diverge at event %s: both %s, with different content", thousands(d.N), a)
	}
	return fmt.Sprintf("diverge at event %s: A %s, B %s", thousands(d.N), didText(d.A), didText(d.B))
}

// didText is what an agent did in an event.
func didText(e *agentlog.Event) string {
	if e == nil {
		return "has ended"
	}
	verb := map[string]string{
		agentlog.ToolUse: "ran", agentlog.FileEdited: "", agentlog.Completed: "completed:", agentlog.Started: "started", agentlog.ToolCompleted: "got of", agentlog.UserToolResult: "got",
		agentlog.AssistantMessage: "wrote", agentlog.Message: "wrote", agentlog.UserMessage: "was told", agentlog.SystemMessage: "was set up:",
	}
	word, known := verb[e.Type]
	if !known {
		word = strings.TrimPrefix(e.Type, "agent.") + ":"
	}
	return strings.TrimSuffix(joinKnown(" ", word, strings.TrimPrefix(e.What, "-> ")), ":")
}

// thousands is a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// EventsCompareForm is a form of a comparison for people.
type EventsCompareForm string

// The closed list.
const (
	CompareTable    EventsCompareForm = "table"
	CompareMarkdown EventsCompareForm = "markdown"
)

// EventsCompareForms are all forms.
func EventsCompareForms() []EventsCompareForm {
	return []EventsCompareForm{CompareTable, CompareMarkdown}
}

// ShowEventsComparison shows what differs. The error decides the exit code.
func ShowEventsComparison(p *output.Printer, schema string, c *look.EventsComparison, form EventsCompareForm) error {
	for _, r := range c.Sessions {
		warnOf(p, r)
	}
	verdict := compareVerdict(c)
	errs := slices.Concat(c.Sessions[0].Errors, c.Sessions[1].Errors)
	if form == CompareMarkdown && p.Format.Name() == output.Table && len(p.Columns) == 0 {
		if _, err := io.WriteString(p.Stdout(), compareMarkdown(c)); err != nil {
			return err
		}
		return verdict
	}
	return output.ShowItemAs(p, output.ItemSpec[*look.EventsComparison]{Schema: schema, Columns: EventsCompareColumns(), Human: compareSheet}, c, verdict, errs...)
}

// compareVerdict is the error that decides the exit code: what could not be read proves no sameness.
func compareVerdict(c *look.EventsComparison) error {
	switch {
	case !c.Same():
		return fault.New(fault.KindFound, "the sessions %s", compareHeadline(c))
	case !c.Whole():
		return fault.New(fault.KindPartial, "the sessions may differ: %s", compareHeadline(c))
	}
	return nil
}

// maxOnly is how many tools or files of one session alone a page names.
const maxOnly = 20

func compareSheet(s *output.Sheet, c *look.EventsComparison) {
	s.Text(compareHeadline(c))
	if text := firstActText(c.Comparison); text != "" {
		s.Text(text)
	}
	s.Section("Figures")
	s.Table([]string{"", "A", "B"}, compareRows(c))
	for n, name := range []string{"A", "B"} {
		onlySection(s, "Only "+name+" ran", c.OnlyTools[n])
		onlySection(s, "Only "+name+" changed", c.OnlyFiles[n])
	}
	if len(c.Files) > 0 {
		s.Section("Changed differently")
		rows := make([][]any, 0, len(c.Files))
		for _, f := range c.Files[:min(len(c.Files), maxFiles)] {
			rows = append(rows, []any{f.Path, changeText(f.A), changeText(f.B)})
		}
		s.Table([]string{"FILE", "A", "B"}, rows)
		if more := len(c.Files) - maxFiles; more > 0 {
			s.Text(fmt.Sprintf("and %d more; -o json has all", more))
		}
	}
}

// firstActText names the first act that differs, where it is another event than the first that differs.
func firstActText(c agentlog.Comparison) string {
	switch {
	case c.Same(), c.Acts != nil && c.Acts.A == c.Diverge.A && c.Acts.B == c.Diverge.B:
		return ""
	case c.Acts == nil:
		return "the tools, changes of files and ends are the same; what was written or answered differs"
	}
	return fmt.Sprintf("the first act that differs is number %s: A %s, B %s", thousands(c.Acts.N), didText(c.Acts.A), didText(c.Acts.B))
}

func onlySection(s *output.Sheet, title string, list []string) {
	if len(list) == 0 {
		return
	}
	s.Section(title)
	s.Text(strings.Join(list[:min(len(list), maxOnly)], "\n"))
	if more := len(list) - maxOnly; more > 0 {
		s.Text(fmt.Sprintf("and %d more; -o json has all", more))
	}
}

// changeText is "2 edits +5 -2, another diff".
func changeText(f agentlog.FileChange) string {
	text := "1 edit"
	if f.Edits != 1 {
		text = fmt.Sprintf("%d edits", f.Edits)
	}
	if f.Added != nil {
		text += fmt.Sprintf(" +%d", *f.Added)
	}
	if f.Removed != nil {
		text += fmt.Sprintf(" -%d", *f.Removed)
	}
	return text
}

// compareRows are the figures of both.
func compareRows(c *look.EventsComparison) [][]any {
	a, b := sessionOf(c.A, c.Sessions[0]), sessionOf(c.B, c.Sessions[1])
	row := func(name string, of func(session) any) []any { return []any{name, of(a), of(b)} }
	rows := [][]any{
		row("session", func(s session) any { return s.name }),
		row("events", func(s session) any { return thousands(s.Stats.Events) }),
		row("turns", func(s session) any { return turnsText(s) }),
		row("duration", func(s session) any { return durationText(s) }),
		row("end", func(s session) any { return endText(s.End) }),
		row("tools", func(s session) any { return noneIfEmpty(countText(s.Tools)) }),
		row("files", func(s session) any { return len(s.Files) }),
		row("errors", func(s session) any { return s.Errors }),
	}
	if !a.isTranscript() || !b.isTranscript() {
		rows = append(rows, row("heartbeats", func(s session) any { return s.Heartbeats.String() }))
	}
	if a.isTranscript() || b.isTranscript() {
		rows = append(rows, row("form", func(s session) any { return s.Form.Title() }), row("tokens", func(s session) any { return tokensText(s.Tokens) }))
	}
	return rows
}

func durationText(s session) string {
	if s.First.IsZero() {
		return notKnown
	}
	return sandbox.FormatDuration(s.Duration())
}

// compareMarkdown is a comparison as a page of Markdown. No text of others is mark-up in it.
func compareMarkdown(c *look.EventsComparison) string {
	w := &reportPage{}
	w.line("# %s\n", mdText(compareHeadline(c)))
	if text := firstActText(c.Comparison); text != "" {
		w.line("%s\n", mdText(text))
	}
	cell := func(v any) string { return mdText(fmt.Sprint(v)) }
	var rows [][]string
	for _, row := range compareRows(c) {
		rows = append(rows, []string{cell(row[0]), cell(row[1]), cell(row[2])})
	}
	w.table("", []string{"", "A", "B"}, rows)
	for n, name := range []string{"A", "B"} {
		w.list("Only "+name+" ran", c.OnlyTools[n])
		w.list("Only "+name+" changed", c.OnlyFiles[n])
	}
	if len(c.Files) > 0 {
		w.section("Changed differently")
		rows = nil
		for _, f := range c.Files {
			rows = append(rows, []string{mdCode(cmp.Or(f.Path, "a file")), cell(changeText(f.A)), cell(changeText(f.B))})
		}
		w.table("", []string{"file", "A", "B"}, rows)
	}
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

// list writes a section with a list of code; without lines nothing.
func (w *reportPage) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.section(title)
	for _, line := range lines {
		w.line("- %s", mdCode(line))
	}
	w.line("")
}
