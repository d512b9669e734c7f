package views

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Investigation is an investigation as it is shown. Program is what sbx is called.
type Investigation struct {
	*ops.DiagnoseResult

	Program string
}

// DiagnoseColumns are those of `sbx diagnose`.
func DiagnoseColumns() []output.Column[Investigation] {
	type row = Investigation
	return []output.Column[row]{
		{Name: "verdict", Value: func(d row) any { return d.Verdict() }},
		{Name: "reason", Value: row.headline},
		{Name: "at", Value: func(d row) any { return output.Time(d.At) }},
		{Name: "ref", Value: row.refValue},
		{Name: "task", Value: row.taskValue},
		{Name: "steps", Value: func(d row) any { return stepList(d.Steps) }},
		{Name: "stuck", Value: func(d row) any { return d.groupList(d.Stuck, groupCommand) }},
		{Name: "suspected", Value: func(d row) any { return d.groupList(d.Suspected, suspectCommand) }},
		{Name: "unjudged", Value: func(d row) any { return refList(d.Unjudged) }},
		{Name: "flags", Value: func(d row) any { return flagItems(d.Flags) }},
		{Name: "causes", Value: func(d row) any { return causeItems(d.Causes) }},
		{Name: "next", Value: row.nextList},
	}
}

func (d Investigation) refValue() any {
	if d.Inspected == nil {
		return nil
	}
	return d.Inspected.Seen.Sandbox.Ref().String()
}

func (d Investigation) taskValue() any {
	if d.Task == nil {
		return nil
	}
	return d.Task.ID
}

func stepList(steps []ops.DiagnoseStep) []any {
	list := make([]any, 0, len(steps))
	for _, s := range steps {
		answers := make([]any, 0, len(s.Answers))
		for _, a := range s.Answers {
			answers = append(answers, output.Fields{
				{Key: "id", Value: a.ID}, {Key: "question", Value: a.Question}, {Key: "answer", Value: a.Text}, {Key: "known", Value: a.Known},
			})
		}
		list = append(list, output.Fields{
			{Key: "id", Value: s.ID},
			{Key: "title", Value: s.Title},
			{Key: "eta_seconds", Value: output.Seconds(s.ETA)},
			{Key: "took_seconds", Value: output.Seconds(s.Took)},
			{Key: "answers", Value: answers},
		})
	}
	return list
}

func (d Investigation) groupList(groups []ops.CauseGroup, command func(ops.CauseGroup) string) any {
	list := make([]any, 0, len(groups))
	for _, g := range groups {
		list = append(list, output.Fields{
			{Key: "provider", Value: g.Provider},
			{Key: "cause", Value: g.Cause},
			{Key: "count", Value: len(g.Refs)},
			{Key: "refs", Value: refList(g.Refs)},
			{Key: "command", Value: d.Program + " " + command(g)},
		})
	}
	return list
}

func refList(refs []sandbox.Ref) []any {
	list := make([]any, len(refs))
	for i, ref := range refs {
		list[i] = ref.String()
	}
	return list
}

// groupCommand plans the end of a group, and only shows the plan.
func groupCommand(g ops.CauseGroup) string {
	if g.Cause == sandbox.CauseGhost {
		return compareRecords().Command + " --provider " + ShellWord(g.Provider)
	}
	if len(g.Refs) == 1 {
		return "terminate " + ShellWord(g.Refs[0].String())
	}
	return "cleanup --stuck --provider " + ShellWord(g.Provider) + " --where " + ShellWord(causeCondition(g.Cause))
}

// suspectCommand shows the sandboxes of a group, and changes nothing.
func suspectCommand(g ops.CauseGroup) string {
	if len(g.Refs) == 1 {
		return "inspect " + ShellWord(g.Refs[0].String())
	}
	return "ls --provider " + ShellWord(g.Provider) + " --where " + ShellWord(causeCondition(g.Cause))
}

// causeCondition selects sandboxes by their cause.
func causeCondition(c sandbox.Cause) string { return `cause == "` + string(c) + `"` }

// CauseItem is one possible cause with what speaks for it.
type CauseItem struct {
	ID         string             `json:"id"`         // The rule that found it: a cause of the runbook, exit for what an exit proves, or the cause.
	Title      string             `json:"title"`      // The cause in words.
	Cause      sandbox.Cause      `json:"cause"`      // The cause; unknown where it is not one of a sandbox.
	Confidence sandbox.Confidence `json:"confidence"` // How sure it is; unknown for one that the symptoms exclude.
	Score      float64            `json:"score"`      // The weight of the symptoms seen, of those known, from 0 to 1.
	Coverage   float64            `json:"coverage"`   // The weight of the symptoms known, of all, from 0 to 1.
	Evidence   []EvidenceItem     `json:"evidence"`   // What speaks for it.
	WhyNot     *string            `json:"why_not"`    // What speaks against it, or against the next one; null for nothing.
}

// causeItems are ranked causes as data.
func causeItems(causes []triage.Finding) []CauseItem {
	items := make([]CauseItem, len(causes))
	for i, c := range causes {
		items[i] = CauseItem{c.ID, c.Title, c.Cause, c.Confidence, hundredths(c.Score), hundredths(c.Coverage), EvidenceList(c.Evidence), orNil(c.WhyNot)}
	}
	return items
}

func (d Investigation) nextList() any {
	list := []any{}
	for _, n := range d.next() {
		list = append(list, output.Fields{{Key: "command", Value: d.Program + " " + n.Command}, {Key: "why", Value: n.Why}})
	}
	return list
}

// headline is the verdict in one sentence.
func (d Investigation) headline() any {
	text := d.verdictWords()
	if d.Task == nil {
		return text
	}
	return d.Task.ID + " is " + ops.WithDetail(string(d.Task.State), d.Task.Why()) + "; " + text
}

func (d Investigation) verdictWords() string {
	if r := d.Inspected; r != nil {
		i := InspectionOf(r, d.Program)
		text := i.Ref().String() + ": " + i.verdictText()
		if r.Missing != nil {
			text += "; it no longer exists, and this is what is on record"
		}
		return text
	}
	if d.Task != nil {
		return "it has no sandbox"
	}
	text := fmt.Sprintf("%d of %d sandboxes at %s are stuck", d.Census.Stuck, d.Listed, countedProviders(d.Providers))
	switch {
	case d.Listed == 0 && len(d.Errors) > 0:
		return "unknown: no sandbox is listed, and not everything could be read"
	case d.Census.Stuck == 0:
		text = fmt.Sprintf("none of %d sandboxes at %s is stuck", d.Listed, countedProviders(d.Providers))
	}
	suspected := 0
	for _, g := range d.Suspected {
		suspected += len(g.Refs)
	}
	switch suspected {
	case 0:
	case 1:
		text += "; 1 has a probable fault"
	default:
		text += fmt.Sprintf("; %d have a probable fault", suspected)
	}
	if d.Census.Unjudged > 0 {
		text += fmt.Sprintf("; %d could not be judged", d.Census.Unjudged)
	}
	return text
}

func countedProviders(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%d providers", len(names))
	}
	return strings.Join(names, ", ")
}

// next are the commands to type, the most useful first.
func (d Investigation) next() []step {
	switch {
	case d.Inspected != nil:
		return d.nextOfOne()
	case d.Task != nil:
		return []step{{"see its attempts", "tasks show " + ShellWord(d.Task.ID)}}
	}
	return d.nextOfFleet()
}

func (d Investigation) nextOfOne() []step {
	r := d.Inspected
	steps := InspectionOf(r, d.Program).Next()
	if r.Missing != nil {
		steps = InspectionOf(r, d.Program).HigherLimit()
		if r.End != nil && r.End.Run != "" {
			steps = append(steps, step{"see the run that ended it", "cleanup show " + ShellWord(r.End.Run)})
		}
	}
	if d.Task != nil {
		steps = append(steps, step{"see its attempts", "tasks show " + ShellWord(d.Task.ID)})
	}
	return steps
}

// nextOfFleet names what helps against what was found. The commands of the stuck groups stand beside
// them.
func (d Investigation) nextOfFleet() []step {
	var steps []step
	if d.Census.Stuck > 0 {
		steps = append(steps, step{fmt.Sprintf("plan the end of all %d", d.Census.Stuck), "cleanup --stuck"})
	}
	likely := func(id string) bool {
		return slices.ContainsFunc(d.Causes, func(c triage.Finding) bool { return c.ID == id && c.Confidence != sandbox.Hint })
	}
	has := func(id string) bool {
		return slices.ContainsFunc(d.Flags, func(f triage.Flag) bool { return f.ID == id && f.Verdict == sandbox.True }) ||
			slices.ContainsFunc(d.Causes, func(c triage.Finding) bool { return c.ID == id })
	}
	if n := len(d.Unjudged); n > 0 {
		steps = append(steps, step{fmt.Sprintf("one of the %d not judged", n), "inspect " + ShellWord(d.Unjudged[0].String())})
	}
	if has("R55") || has("R14") || has("cleanup_not_running") {
		steps = append(steps, step{"see why cleanup does not do its work", "cron check"})
	}
	if has("R18") || has("state_corruption") {
		steps = append(steps, compareRecords())
	}
	if likely("resource_exhaustion") || len(d.Errors) > 0 {
		steps = append(steps, step{"check accounts and quotas", "doctor"})
	}
	if has("R12") {
		steps = append(steps, step{"see which tasks hit time limits", "report"})
	}
	if len(steps) == 0 {
		steps = append(steps, step{"compare with the targets of the runbook", "verify"})
	}
	return steps
}

// ShowDiagnosis shows an investigation. The error decides the exit code.
func ShowDiagnosis(p *output.Printer, schema string, r *ops.DiagnoseResult, program string) error {
	d := Investigation{r, program}
	verdict := r.Err()
	errs := r.Errors
	if verdict != nil && len(errs) == 0 {
		errs = []error{verdict}
	}
	spec := output.ItemSpec[Investigation]{Schema: schema, Columns: DiagnoseColumns(), Human: func(s *output.Sheet, d Investigation) { d.page(s, p.Verbose > 0) }}
	return output.ShowItemAs(p, spec, d, verdict, errs...)
}

func hundredths(share float64) float64 { return math.Round(share*100) / 100 }
