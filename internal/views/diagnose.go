package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Investigation is an investigation as it is shown. Program is what sbx is called.
type Investigation struct {
	*look.DiagnoseResult

	Program string
	one     *Inspection // of one sandbox; nil = it is of all, or of a task without one
}

// InvestigationItem is what diagnose found.
type InvestigationItem struct {
	Verdict sandbox.Verdict `json:"verdict" table:""` // true where nothing is wrong, false where something is, else unknown.
	Reason  string          `json:"reason" table:""`  // The verdict in one sentence.
	At      *time.Time      `json:"at" table:""`      // When it was found.
	Ref     *string         `json:"ref" table:""`     // The sandbox that was investigated, PROFILE/ID; null for all.
	Task    *string         `json:"task" table:""`    // The task that was investigated; null for none.
	Steps   []StepItem      `json:"steps" table:""`   // The five steps, in the order of the runbook.
	// The stuck sandboxes by cause and provider, the most frequent cause first; empty for one
	// sandbox.
	Stuck []CauseGroupItem `json:"stuck" table:""`
	// The sandboxes that are not known to be stuck and have a likely cause of trouble, in the same
	// form; empty for one sandbox.
	Suspected []CauseGroupItem `json:"suspected" table:""`
	Unjudged  []string         `json:"unjudged" table:""` // The sandboxes that could not be judged; empty for one sandbox.
	Flags     []FlagItem       `json:"flags" table:""`    // The answers to the warnings of the runbook.
	Causes    []CauseItem      `json:"causes" table:""`   // The possible causes: of one sandbox the likeliest first.
	Next      []NextItem       `json:"next" table:""`     // What to type, the most useful first.
}

// StepItem is one step.
type StepItem struct {
	ID          string       `json:"id"`           // count, stuck, logs, resources or cleanup.
	Number      string       `json:"number"`       // Its number in the runbook.
	Word        string       `json:"word"`         // What every surface calls it.
	Title       string       `json:"title"`        // What it does.
	ETASeconds  float64      `json:"eta_seconds"`  // The time that the runbook allows a person for it.
	TookSeconds float64      `json:"took_seconds"` // The time until its answers were there.
	Answers     []AnswerItem `json:"answers"`      // The answers to its questions.
}

// AnswerItem answers one question.
type AnswerItem struct {
	ID          string  `json:"id"`          // Its name.
	Requirement *string `json:"requirement"` // Its number in docs/REQUIREMENTS.md, until the next release; null = none.
	Question    string  `json:"question"`    // The question.
	Answer      string  `json:"answer"`      // The answer; "unknown: " and the reason where there is none.
	Known       bool    `json:"known"`       // Whether there is an answer.
}

// CauseGroupItem are sandboxes of one provider with one cause.
type CauseGroupItem struct {
	Provider string        `json:"provider"` // The profile.
	Cause    sandbox.Cause `json:"cause"`    // The cause.
	Count    int           `json:"count"`    // How many there are.
	Refs     []string      `json:"refs"`     // Each of them, PROFILE/ID.
	// Of stuck ones the command that plans their end, or terminates the only one; of suspected ones
	// the command that shows them.
	Command string `json:"command"`
}

// NextItem is a command to type.
type NextItem struct {
	Command string `json:"command"` // The whole line.
	Why     string `json:"why"`     // What for.
}

// DiagnoseColumns are the columns of an InvestigationItem.
func DiagnoseColumns() []output.Column[Investigation] { return output.Columns(Investigation.Item) }

// Item is the investigation as documents have it.
func (d Investigation) Item() InvestigationItem {
	item := InvestigationItem{
		Verdict: d.Verdict(), Reason: d.headline(), At: output.Time(d.At), Steps: stepItems(d.Steps),
		Stuck: d.groupItems(d.Stuck, d.groupCommand), Suspected: d.groupItems(d.Suspected, suspectCommand), Unjudged: refTexts(d.Unjudged),
		Flags: flagItems(d.Flags), Causes: causeItems(d.Causes), Next: []NextItem{},
	}
	if d.one != nil {
		item.Ref = new(d.one.Ref().String())
	}
	if d.Task != nil {
		item.Task = &d.Task.ID
	}
	for _, n := range d.next() {
		item.Next = append(item.Next, NextItem{d.Program + " " + n.Command, n.Why})
	}
	return item
}

func stepItems(steps []look.DiagnoseStep) []StepItem {
	items := make([]StepItem, len(steps))
	for i, s := range steps {
		items[i] = StepItem{
			ID: s.ID, Number: s.Number, Word: s.Word, Title: s.Title, ETASeconds: output.Seconds(s.ETA), TookSeconds: output.Seconds(s.Took),
			Answers: []AnswerItem{},
		}
		for _, a := range s.Answers {
			items[i].Answers = append(items[i].Answers, AnswerItem{a.ID, orNil(requirement.Of(a.ID)), a.Question, a.Text, a.Known})
		}
	}
	return items
}

func (d Investigation) groupItems(groups []ops.CauseGroup, command func(ops.CauseGroup) string) []CauseGroupItem {
	items := make([]CauseGroupItem, len(groups))
	for i, g := range groups {
		items[i] = CauseGroupItem{g.Provider, g.Cause, len(g.Refs), refTexts(g.Refs), d.Program + " " + command(g)}
	}
	return items
}

// refTexts are references as texts, PROFILE/ID.
func refTexts(refs []sandbox.Ref) []string {
	all := []string{}
	for _, ref := range refs {
		all = append(all, ref.String())
	}
	return all
}

// groupCommand plans the end of a group, and only shows the plan. A group without a provider is of all.
func (d Investigation) groupCommand(g ops.CauseGroup) string {
	switch {
	case g.Cause == sandbox.CauseGhost:
		return compareRecords().Command + atProvider(g)
	case len(g.Refs) == 1:
		return "terminate " + ShellWord(g.Refs[0].String())
	}
	line := "cleanup --stuck" + atProvider(g) + " --where " + ShellWord(causeCondition(g.Cause))
	if d.Unowned[g.Provider] > 0 || g.Provider == "" && len(d.Unowned) > 0 {
		line += unownedFlag
	}
	return line
}

// suspectCommand shows the sandboxes of a group, and changes nothing.
func suspectCommand(g ops.CauseGroup) string {
	if len(g.Refs) == 1 {
		return "inspect " + ShellWord(g.Refs[0].String())
	}
	return "ls" + atProvider(g) + " --where " + ShellWord(causeCondition(g.Cause))
}

func atProvider(g ops.CauseGroup) string {
	if g.Provider == "" {
		return ""
	}
	return " --provider " + ShellWord(g.Provider)
}

// causeCondition selects sandboxes by their cause.
func causeCondition(c sandbox.Cause) string { return `cause == "` + string(c) + `"` }

// headline is the verdict in one sentence.
func (d Investigation) headline() string {
	text := d.verdictWords()
	if d.Task == nil {
		return text
	}
	return taskWords(d.Task) + "; " + text
}

func (d Investigation) verdictWords() string {
	if d.one != nil {
		return d.one.Ref().String() + ": " + d.one.verdictText()
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
	if len(d.Lost) > 0 {
		text += "; unknown of " + countedProviders(d.Lost) + ", which could not be listed"
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

// ShowDiagnosis shows an investigation. The error decides the exit code.
func ShowDiagnosis(p *output.Printer, schema string, r *look.DiagnoseResult, program string) error {
	d := Investigation{r, program, InspectionOf(p, r, program)}
	verdict := r.Err()
	errs := r.Errors
	if verdict != nil && len(errs) == 0 {
		errs = []error{verdict}
	}
	spec := output.ItemSpec[Investigation]{Schema: schema, Columns: DiagnoseColumns(), Human: func(s *output.Sheet, d Investigation) { d.page(s, p.Verbose > 0) }}
	return output.ShowItemAs(p, spec, d, verdict, errs...)
}

// page shows an investigation on one screen; full adds every question and every flag.
func (d Investigation) page(s *output.Sheet, full bool) {
	if d.one != nil {
		d.one.page(s, full)
		return
	}
	s.Text(d.headline())
	addNext(s, d.Program, d.next())
	d.pageGroups(s, stuckStep("stuck"), d.Stuck, d.groupCommand)
	d.pageGroups(s, "Suspected", d.Suspected, suspectCommand)
	causes, hints := d.chooseCauses(full)
	if len(causes) > 0 {
		s.Section("Causes")
		addCauses(s, causes, true)
	}
	if full {
		s.Section("Flags")
		addFlags(s, d.Flags, true)
		addSteps(s, d.Steps)
		return
	}
	d.pageFindings(s, hints)
}

// chooseCauses are the causes that are explained, and those that are only hints. The groups stand above
// with their causes. Full explains all.
func (d Investigation) chooseCauses(full bool) (causes, hints []triage.Finding) {
	for _, c := range d.Causes {
		switch {
		case full:
			causes = append(causes, c)
		case look.OfGroup(c):
		case c.Confidence == sandbox.Hint:
			hints = append(hints, c)
		default:
			causes = append(causes, c)
		}
	}
	return causes, hints
}

// pageGroups has for each cause how many there are, the evidence of one, the beginnings of their ids,
// which commands take, and the command.
func (d Investigation) pageGroups(s *output.Sheet, title string, groups []ops.CauseGroup, command func(ops.CauseGroup) string) {
	if len(groups) == 0 {
		return
	}
	s.Section(title)
	for i := 0; i < len(groups); {
		all, ids := groups[i], []string{groups[i].Provider + " " + strings.Join(groups[i].Short, " ")}
		all.Provider = "" // the cause selects these alone
		for i++; i < len(groups) && groups[i].Cause == all.Cause; i++ {
			all.Refs = slices.Concat(all.Refs, groups[i].Refs)
			ids = append(ids, groups[i].Provider+" "+strings.Join(groups[i].Short, " "))
		}
		s.Field(strconv.Itoa(len(all.Refs)), causeWord(all.Cause)+d.groupEvidence(all.Cause)+": "+strings.Join(ids, "; "))
		s.FieldTone("", d.Program+" "+command(all), output.Good)
	}
}

// groupEvidence is what the sandbox shows of which most is known.
func (d Investigation) groupEvidence(cause sandbox.Cause) string {
	for _, c := range d.Causes {
		if c.Cause == cause && look.OfGroup(c) {
			return ", " + ops.WithDetail(string(c.Confidence), briefEvidence(c))
		}
	}
	return ""
}

// briefEvidence are the first figures, without the counts.
func briefEvidence(c triage.Finding) string {
	figures := slices.DeleteFunc(slices.Clone(c.Evidence), func(e sandbox.Evidence) bool { return look.IsCountEvidence(e) || e.What == look.ExampleEvidence })
	return joinEvidence(figures[:min(2, len(figures))])
}

func causeWord(c sandbox.Cause) string {
	if c == sandbox.CauseUnknown {
		return "unknown cause"
	}
	return c.Label()
}

// pageFindings has a line for each hint, each raised flag, and each step with its first answers.
func (d Investigation) pageFindings(s *output.Sheet, hints []triage.Finding) {
	took, eta := time.Duration(0), time.Duration(0)
	for _, one := range d.Steps {
		took, eta = max(took, one.Took), eta+one.ETA
	}
	title := fmt.Sprintf("Findings (%ss; by hand %s)", Decimal(took.Seconds(), 1), sandbox.FormatDuration(eta))
	if d.Census.Stuck > 0 { // the page fits one screen
		title += "; after the end " + stuckStep("verify") + ": " + d.Program + " verify"
	}
	s.Section(title)
	for _, c := range hints {
		s.FieldTone(string(c.Confidence), c.Title+": "+joinEvidence(c.Evidence), ConfidenceTone(c.Confidence))
	}
	var said []string
	for _, f := range d.Flags {
		if f.Verdict == sandbox.True && f.Severity != triage.Info {
			for _, e := range f.Evidence {
				said = append(said, e.Value)
			}
			s.FieldTone(string(f.Severity), f.Say+": "+joinEvidence(f.Evidence), SeverityTone(f.Severity))
		}
	}
	for _, note := range defaultNotes(d.Flags) {
		s.Field("note", note)
	}
	for _, one := range d.Steps {
		isAside := func(a look.Answer) bool { return standsAbove(a) || slices.Contains(said, a.Text) }
		if text := briefAnswers(one.Answers, isAside); text != "" {
			s.Field(one.Label(), text)
		}
	}
}
