package views

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// reportRows is how many causes and tasks a report names.
const reportRows = 5

// ReportPage is a report: what was measured, why attempts fail, and where to look.
type ReportPage struct {
	Tasks []task.Task
	Now   time.Time
}

// Page groups the figures.
func (r ReportPage) Page(s *output.Sheet, figures []task.Figure) {
	group, rows := "", [][]any(nil)
	head := []string{"figure", "value", "target", "verdict", "samples"}
	flush := func() {
		if len(rows) > 0 {
			s.Section(group).Table(head, rows)
		}
		rows = nil
	}
	for _, f := range figures {
		if f.Group != group {
			flush()
			group = f.Group
		}
		rows = append(rows, []any{f.Title, figureText(f), targetText(f), figureVerdict(f), f.Samples})
	}
	flush()
	r.pageCauses(s)
	r.pageLook(s)
	s.Text("`sbx report -o wide` shows the source of each figure")
}

// figureVerdict distinguishes a figure without a target from one without a sample.
func figureVerdict(f task.Figure) string {
	switch {
	case f.Samples == 0:
		return "no sample"
	case f.Target.Sign == "":
		return "no target"
	case f.Verdict() == sandbox.True:
		return "met"
	}
	return "MISSED"
}

func (r ReportPage) causesOfFailures() []task.FailureCount {
	list := task.CountFailures(r.Tasks)
	return list[:min(len(list), reportRows)]
}

func blameWord(b task.FailureCount) string {
	if b.Cause == sandbox.CauseUnknown {
		return "-"
	}
	return cmp.Or(string(b.Cause), "-")
}

func (r ReportPage) pageCauses(s *output.Sheet) {
	var rows [][]any
	for _, b := range r.causesOfFailures() {
		rows = append(rows, []any{b.Attempts, string(b.Class), blameWord(b), "sbx tasks show " + b.Latest})
	}
	if len(rows) > 0 {
		s.Section("Why attempts failed").Table([]string{"attempts", "class", "cause", "the latest"}, rows)
	}
}

// LookItem is a task to look at.
type LookItem struct {
	Task string `json:"task"` // The task.
	Why  string `json:"why"`  // Why.
}

// tasksToLookAt gives the tasks to look at, the most pressing first.
func (r ReportPage) tasksToLookAt() []LookItem {
	var list []LookItem
	add := func(tasks []task.Task, is func(task.Task) string) {
		for _, t := range tasks {
			if why := is(t); why != "" && len(list) < reportRows {
				list = append(list, LookItem{t.ID, why})
			}
		}
	}
	add(task.Incidents(r.Tasks), func(task.Task) string { return "its record contradicts itself" })
	add(r.Tasks, func(t task.Task) string {
		if t.Publish.State == task.PublishUnknown {
			return "unknown whether it was published"
		}
		return ""
	})
	add(r.Tasks, func(t task.Task) string {
		if !t.StopAt.IsZero() && !t.State.Final() && r.Now.Sub(t.StopAt) > task.EndWait {
			return "stopped " + sandbox.FormatDuration(r.Now.Sub(t.StopAt)) + " ago, and not verified gone"
		}
		return ""
	})
	add(r.Tasks, func(t task.Task) string {
		if t.State == task.Failed || t.State == task.TimedOut {
			return ops.WithDetail(string(t.State), string(TaskRow{Task: t}.lastExit().Class))
		}
		return ""
	})
	return list
}

func (r ReportPage) pageLook(s *output.Sheet) {
	var rows [][]any
	for _, l := range r.tasksToLookAt() {
		rows = append(rows, []any{"sbx tasks show " + l.Task, l.Why})
	}
	if len(rows) > 0 {
		s.Section("Look at").Table([]string{"command", "why"}, rows)
	}
}

// ShowReport shows the figures of tasks beside their targets.
func ShowReport(p *output.Printer, schema string, r *launch.ReportResult) error {
	page := ReportPage{Tasks: r.Tasks, Now: r.At}
	list, err := output.NewList(p, output.ListSpec[task.Figure]{Schema: schema, Columns: ReportColumns(), Human: page.Page})
	if err != nil {
		return err
	}
	list.Set(page.keys())
	for _, f := range r.Figures {
		if err := list.Add(f); err != nil {
			return list.CloseAs(err)
		}
	}
	return list.Close()
}

// FigureItem is one figure of the report.
type FigureItem struct {
	ID          string          `json:"id" table:""`        // Its name.
	Requirement *string         `json:"requirement"`        // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	Group       string          `json:"group"`              // The group that it belongs to.
	Title       string          `json:"title" table:""`     // What it measures.
	Value       *float64        `json:"value" table:""`     // The value.
	Unit        string          `json:"unit" table:",wide"` // The unit of the value: count, messages, seconds or share.
	Target      *string         `json:"target" table:""`    // What it should be.
	Verdict     sandbox.Verdict `json:"verdict" table:""`   // Whether it is so.
	Samples     int             `json:"samples" table:""`   // How many cases it is from.
	Why         *string         `json:"why" table:",wide"`  // Why there is no value.
}

// FailureItem counts the attempts that failed in one way.
type FailureItem struct {
	Class    sandbox.Class  `json:"class"`    // The class of the exit.
	Cause    *sandbox.Cause `json:"cause"`    // What ended them.
	Attempts int            `json:"attempts"` // How many attempts.
	Latest   string         `json:"latest"`   // The latest task of them.
}

// ReportKeys are the keys of report beside its items.
type ReportKeys struct {
	Tasks  *int           `json:"tasks"`   // How many tasks it is from.
	Causes *[]FailureItem `json:"causes"`  // Why attempts failed, the most frequent first.
	LookAt *[]LookItem    `json:"look_at"` // The tasks to look at first.
}

func (r ReportPage) keys() ReportKeys {
	causes := []FailureItem{}
	for _, b := range r.causesOfFailures() {
		causes = append(causes, FailureItem{b.Class, orNil(b.Cause), b.Attempts, b.Latest})
	}
	return ReportKeys{new(len(r.Tasks)), &causes, new(r.tasksToLookAt())}
}

// ReportColumns are the columns of a FigureItem. A target has the unit of the value: for people percent,
// else as it is.
func ReportColumns() []output.Column[task.Figure] {
	type column = output.Column[task.Figure]
	return output.Columns(figureItem, column{Name: "value", Text: figureText}, column{Name: "target", Text: targetText}, column{Name: "verdict", Tone: figureTone})
}

func figureItem(f task.Figure) FigureItem {
	return FigureItem{
		f.ID, orNil(requirement.Of(f.ID)), f.Group, f.Title, roundedOrNil(f.Value), string(f.Unit), targetValue(f), f.Verdict(), f.Samples, orNil(f.Why),
	}
}

func figureTone(f task.Figure) output.Tone {
	switch f.Verdict() {
	case sandbox.True:
		return output.Good
	case sandbox.False:
		return output.Bad
	case sandbox.Unknown:
	}
	return output.Muted
}

// roundedOrNil is a value to four digits; nil stays unknown.
func roundedOrNil(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return new(math.Round(*v*1e4) / 1e4)
}

func figureText(f task.Figure) string {
	if f.Value == nil {
		return "-"
	}
	return unitText(*f.Value, f.Unit)
}

func unitText(v float64, unit task.Unit) string {
	switch unit {
	case task.UnitShare:
		return Decimal(v*100, 1) + "%"
	case task.UnitSeconds:
		return Decimal(v, 3) + "s"
	case task.UnitMessages, task.UnitCount:
	}
	return Decimal(v, 1)
}

func targetValue(f task.Figure) *string {
	if f.Target.Sign == "" {
		return nil
	}
	return new(f.Target.Sign + " " + strconv.FormatFloat(f.Target.Bound, 'g', -1, 64))
}

func targetText(f task.Figure) string {
	if f.Target.Sign == "" {
		return "-"
	}
	return f.Target.Sign + " " + unitText(f.Target.Bound, f.Unit)
}
