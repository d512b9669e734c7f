package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// stepTitle is the room for the numbers and titles of steps, in cells.
const stepTitle = 35

// stepLabel names a step in a table: "1 count", "6a1 end"; one that an earlier version has recorded by its id.
func stepLabel(number, word, id string) string {
	if number == "" {
		return id
	}
	return number + " " + word
}

// stepHead is a step in a line of its own: "2 stuck", "6a1 Terminate the looping sandboxes".
func stepHead(s engine.Step) string {
	switch h := s.Heading(); {
	case h.Number == "":
		return s.Title
	case h.IsWhole():
		return h.Whole()
	default:
		return h.Number + " " + s.Title
	}
}

// stepName is a step in a table of its run: "4 usage", "6a1 end-loop".
func stepName(s engine.Step) string {
	if s.Heading().IsWhole() {
		return s.Heading().Whole()
	}
	return stepLabel(s.Number, s.ID, s.ID)
}

// RunbookProgress shows the steps of a run as they go, in lines of at most Width cells (0 = any).
type RunbookProgress struct {
	Width   int
	Verbose bool

	whole string // the whole step that was named last
}

// Lines are what people see of a step: its line when it is over, below the whole step that it is inside of, and what is
// to be done of one that a person does.
func (p *RunbookProgress) Lines(s engine.Step) []string {
	var lines []string
	switch {
	case p.Verbose:
		lines = RunbookStepTrace(s)
	case s.Kind == runbook.KindManual && s.State == engine.Running:
		lines = RunbookStepLines(s)
	default:
		lines = slices.DeleteFunc([]string{RunbookStepLine(s, p.Width)}, func(line string) bool { return line == "" })
	}
	h := s.Heading()
	if len(lines) > 0 && h.Number != "" && h.Whole() != p.whole {
		if p.whole = h.Whole(); !h.IsWhole() {
			return append([]string{p.whole}, lines...)
		}
	}
	return lines
}

// RunbookStepLine is a step that is over in one line of at most width cells (0 = any): title, answer and time; "" for one
// that is not, or does not apply.
func RunbookStepLine(s engine.Step, width int) string {
	if s.State == engine.Running || !s.Applies() || s.State == engine.Pending && (s.Reason == "" || s.DependsOn != "") {
		return ""
	}
	took := ""
	if s.Took >= 100*time.Millisecond { // less is no time to a person
		took = "  " + sandbox.FormatElapsed(s.Took)
	}
	head := fmt.Sprintf("%-*s", stepTitle, stepHead(s))
	room := width - len([]rune(head)) - len("  ") - len(took)
	answer := stepAnswer(s)
	if width > 0 {
		answer = cutAnswer(answer, room)
	}
	return strings.TrimRight(head+"  "+answer+took, " ")
}

// cutAnswer shortens an answer to at most room cells, at the end of a part where there is one.
func cutAnswer(answer string, room int) string {
	cells := []rune(answer)
	if len(cells) <= room {
		return answer
	}
	whole := string(cells[:max(room, 0)])
	for _, end := range []string{"; ", " (", ", "} {
		if at := strings.LastIndex(whole, end); at > 0 && strings.Count(whole[:at], "(") == strings.Count(whole[:at], ")") {
			return whole[:at]
		}
	}
	return string(cells[:max(room-len("..."), 0)]) + "..."
}

// stepAnswer is what a step has found or done, in a few words.
func stepAnswer(s engine.Step) string {
	seen := ""
	if len(s.Evidence) > 0 {
		seen = s.Evidence[0]
	}
	switch {
	case s.Act != nil && len(s.Act.Outcomes) > 0:
		return ops.WithDetail(actOutcomes(*s.Act), s.Reason)
	case s.State == engine.Failed:
		return joinKnown(": ", "failed", s.Reason)
	case s.State != engine.Done:
		return s.Reason
	case s.Kind == runbook.KindCheck:
		if figure := len(s.Title) + len(": "); len(seen) > figure && strings.EqualFold(seen[:figure], s.Title+": ") {
			return seen[figure:]
		}
		answer := map[sandbox.Verdict]string{sandbox.True: "yes", sandbox.False: "no", sandbox.Unknown: "not known"}[s.Verdict]
		if s.Verdict == sandbox.Unknown && seen != "" {
			return seen
		}
		return joinKnown(": ", answer, seen)
	case s.Kind == runbook.KindManual:
		return "done"
	case s.Kind == runbook.KindCollect && len(s.Answers) > 0:
		answers := make([]look.Answer, len(s.Answers))
		for i, a := range s.Answers {
			answers[i] = look.Answer{Question: a.Question, Text: a.Answer, Known: a.Known}
			for _, q := range look.InvestigationQuestions() {
				if q.Text == a.Question {
					answers[i].ID = q.ID
				}
			}
		}
		return cmp.Or(briefAnswers(answers, func(look.Answer) bool { return false }), "nothing found")
	case len(s.Answers) > 0:
		return s.Answers[0].Answer
	}
	return cmp.Or(seen, "done")
}

// actOutcomes counts what became of the targets of an act: "10 of 12 ended, 2 failed".
func actOutcomes(a engine.Act) string {
	others, ended := map[string]int{}, 0
	for _, o := range a.Outcomes {
		if isEnd(o.Outcome) {
			ended++
		} else {
			others[strings.ReplaceAll(string(o.Outcome), "_", " ")]++
		}
	}
	return joinKnown(", ", fmt.Sprintf("%d of %d %s", ended, max(len(a.Targets), len(a.Outcomes)), actDone(a)), sandbox.FormatCounts(others))
}

func actDone(a engine.Act) string {
	return cmp.Or(map[string]string{"stop": "stopped", "reconcile": "repaired"}[a.Action], "ended")
}

func isEnd(o sandbox.Outcome) bool {
	return o == sandbox.OutcomeVerified || o == sandbox.OutcomeAlreadyGone
}

// tally is what a run has found, and what became of it.
type tally struct {
	found, over int            // what was stuck or a target, and what of it ended or would end
	ended       map[string]int // by cause
	stay        map[string]int // by reason, with those of which nothing is known
}

// Reasons that a tally compares: of what a dry run would end, and of what a person did not want.
const (
	planned  = "planned"
	declined = "your answer was no"
)

func tallyOf(r *engine.Run) tally {
	cause, why := map[string]string{}, map[string]string{}
	rest := "no step ended them"
	switch {
	case r.DryRun:
		rest = "for later steps"
	case r.Count(engine.Pending)+r.Count(engine.Running) > 0:
		rest = "not reached yet"
	}
	for _, t := range r.Stuck {
		cause[t.Ref], why[t.Ref] = t.Reason, rest
	}
	for _, s := range r.Steps {
		if s.Act != nil && (s.Act.Action == "terminate" || s.Act.Action == "cleanup") {
			readAct(s, cause, why, actState(s, r.DryRun, rest))
		}
	}
	sum := tally{found: max(len(cause), len(why)), ended: map[string]int{}, stay: map[string]int{}}
	for ref, reason := range why {
		switch reason {
		case "", planned:
			sum.ended[cause[ref]]++
			sum.over++
		default:
			sum.stay[reason]++
		}
	}
	return sum
}

// readAct notes what an act says of each sandbox: why it stays, "" = it has ended. Open is the reason of targets without
// an outcome.
func readAct(s engine.Step, cause, why map[string]string, open string) {
	set := func(ref, reason string) {
		before, known := why[ref]
		kept := known && (before == "" || before == declined && reason != "")
		if strings.Contains(ref, "/") && !kept { // not a profile
			why[ref] = reason
		}
	}
	for _, t := range s.Act.Kept {
		if t.KeptBecause != "" {
			set(t.Ref, t.KeptBecause)
		}
	}
	for _, t := range s.Act.Targets {
		if strings.Contains(t.Ref, "/") {
			cause[t.Ref] = cmp.Or(cause[t.Ref], "other")
		}
		set(t.Ref, open)
	}
	for _, t := range s.Act.Declined {
		set(t.Ref, declined)
	}
	for _, o := range s.Act.Outcomes {
		reason := strings.ReplaceAll(string(o.Outcome), "_", " ")
		if isEnd(o.Outcome) {
			reason = ""
		}
		set(o.Ref, reason)
	}
}

// actState is why the targets of an act have no outcome.
func actState(s engine.Step, dry bool, rest string) string {
	switch {
	case dry:
		return planned
	case s.Declined():
		return declined
	case s.State == engine.Failed:
		return "the step failed"
	}
	return rest
}

// runbookSummary says what ended, what stays and why, whom to call, and what to type next.
func runbookSummary(s *output.Sheet, r *engine.Run, program string) {
	sum, ended := tallyOf(r), "ended"
	if r.DryRun {
		ended = "would end"
	}
	s.Section("Summary")
	s.Field("run", joinKnown(", ", joinKnown(" ", r.Runbook, map[bool]string{false: r.ID}[r.DryRun]), string(r.State)))
	if sum.found > 0 {
		s.Field(ended, joinKnown(": ", fmt.Sprintf("%d of %d", sum.over, sum.found), sandbox.FormatCounts(sum.ended)))
	} else {
		s.Field(ended, "0: nothing was found to end")
	}
	left := 0
	for _, n := range sum.stay {
		left += n
	}
	if words := sandbox.FormatCounts(sum.stay); left > 0 {
		s.Field("stay", fmt.Sprintf("%d: %s", left, strings.TrimPrefix(words, fmt.Sprintf("%d ", left))))
	}
	calls := callsNow(r)
	for _, c := range calls[:min(len(calls), maxCalls)] {
		s.Field("call", callText(c))
	}
	if more := len(calls) - maxCalls; more > 0 {
		s.Field("", fmt.Sprintf("and %d more", more))
	}
	addNext(s, program, nextOfRun(r))
}

// maxCalls is how many calls a summary names.
const maxCalls = 2

// nextOfRun is what to type after a run.
func nextOfRun(r *engine.Run) (steps []step) {
	switch {
	case r.DryRun:
		steps = append(steps, step{"do it: each step asks first", joinKnown(" --procedure ", "runbook run "+r.Runbook, r.Procedure)})
	case r.State.CanResume():
		steps = append(steps, step{"go on", "runbook run --resume " + r.ID})
	}
	for _, s := range slices.Backward(r.Steps) {
		if s.Act == nil || s.Act.Unowned == 0 {
			continue
		}
		n := s.Act.Unowned + len(s.Act.Targets)
		for _, o := range s.Act.Outcomes {
			if isEnd(o.Outcome) {
				n--
			}
		}
		_, once, _ := strings.Cut(s.Act.Once, " ")
		_, own, _ := strings.Cut(s.Act.Own, " ")
		steps = append(
			steps, step{fmt.Sprintf("plan the end of the %d that nobody owns", s.Act.Unowned), fmt.Sprintf("%s --max-delete %d", once, n)},
			step{"make them yours", own},
		)
		break
	}
	for _, c := range r.Causes {
		if c.See != "" && c.Confidence != sandbox.Hint && len(steps) < 2 {
			steps = append(steps, step{fmt.Sprintf("%d %s", len(c.Refs), triage.PossibleCauseLabel(c.ID)), "runbook run " + c.See})
		}
	}
	if !r.DryRun {
		steps = append(steps, step{"all steps and acts", "runbook status " + r.ID}, step{"what happened", "incident report " + r.ID})
	}
	return steps
}

func callsNow(r *engine.Run) []engine.Call {
	return slices.DeleteFunc(slices.Clone(r.Calls), func(c engine.Call) bool { return c.Verdict != sandbox.True })
}

// callText is whom to call, where, and what was seen.
func callText(c engine.Call) string {
	return joinKnown(": ", ops.WithDetail(c.Name, c.Channel), strings.Join(c.Evidence, "; "))
}
