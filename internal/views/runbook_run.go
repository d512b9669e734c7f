package views

import (
	"fmt"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
)

// RunbookStepColumns are the columns of a RunStepItem.
func RunbookStepColumns() []output.Column[engine.Step] {
	type column = output.Column[engine.Step]
	return output.Columns(runStepItem,
		column{Name: "took_seconds", Text: func(s engine.Step) string {
			if s.EndedAt.IsZero() {
				return sandbox.FormatDuration(0)
			}
			return sandbox.FormatDuration(s.Took)
		}},
		column{Name: "eta_seconds", Text: func(s engine.Step) string { return sandbox.FormatDuration(s.ETA) }},
	)
}

// RunbookRunColumns are the columns of a RunbookRunItem.
func RunbookRunColumns() []output.Column[engine.Run] { return output.Columns(runbookRunItem) }

// RunbookRunList is a document about one run: its summary when the run is over, verbose all its tables. Program is what sbx is called.
func RunbookRunList(p *output.Printer, schema, program string) (*output.List[engine.Step], func(*engine.Run) error, error) {
	var run *engine.Run
	list, err := output.NewList(p, output.ListSpec[engine.Step]{
		Schema: schema, Columns: RunbookStepColumns(), Human: func(s *output.Sheet, _ []engine.Step) {
			if p.Verbose > 0 {
				runbookRunPage(s, run)
				return
			}
			runbookSummary(s, run, program)
		},
	})
	return list, func(r *engine.Run) error {
		run = r
		return closeRunbookRun(list, r)
	}, err
}

// closeRunbookRun adds what is known of a run. Its error is that of the step that went wrong.
func closeRunbookRun(list *output.List[engine.Step], r *engine.Run) error {
	err := r.Err()
	told := err == nil || r.State != engine.RunFailed
	for _, s := range r.Steps {
		if !told && wentWrong(s) {
			told = true
			_ = list.AddFailed(s, err) // Close gives the error of stdout
			continue
		}
		_ = list.Add(s) // Close gives the error of stdout
	}
	if err != nil && (!told || r.State != engine.RunFailed) {
		list.Fail(err)
	}
	list.Set(runbookRunKeys(r))
	return list.CloseAs(err)
}

func wentWrong(s engine.Step) bool {
	return s.State == engine.Failed || s.Section == engine.SectionVerification && s.Verdict != "" && s.Verdict != sandbox.True
}

// RunbookStepTrace are RunbookStepLines with the conditions as they are written.
func RunbookStepTrace(s engine.Step) []string {
	lines := RunbookStepLines(s)
	if len(lines) == 0 {
		return nil
	}
	conditions := []string{s.Condition}
	if s.Act != nil {
		conditions = append(conditions, s.Act.Expect)
	}
	for _, c := range conditions {
		if c != "" {
			lines = append(lines, "  condition "+c)
		}
	}
	return lines
}

// RunbookStepLines are a step as it ends, for people; none for a step that is not done.
func RunbookStepLines(s engine.Step) []string {
	title := stepHead(s)
	if title != s.Title && !strings.HasSuffix(title, " "+s.Title) {
		title += ": " + s.Title
	}
	head := strings.ReplaceAll(string(s.State), "_", " ") + " " + title
	switch {
	case s.Kind == runbook.KindManual && s.State == engine.Running && len(s.Evidence) > 0: // what is to be done
		return append([]string{"now: " + title}, indented(s.Evidence)...)
	case s.State == engine.NotSelected || s.State == engine.Running || s.State == engine.Pending && s.Reason == "":
		return nil
	case !s.EndedAt.IsZero() && s.ETA > 0:
		head += fmt.Sprintf(" (took %s of %s)", sandbox.FormatElapsed(s.Took), sandbox.FormatDuration(s.ETA))
	}
	if s.Kind == runbook.KindCheck && s.Verdict != "" {
		head += ": " + string(s.Verdict)
	}
	if s.Reason != "" {
		head += ": " + s.Reason
	}
	lines := []string{head}
	for _, a := range s.Answers {
		lines = append(lines, "  "+a.Question+" "+a.Answer)
	}
	if s.Kind != runbook.KindManual {
		lines = append(lines, indented(s.Evidence)...)
	}
	if s.Act != nil {
		for _, o := range s.Act.Outcomes {
			lines = append(lines, strings.TrimSuffix("  "+string(o.Outcome)+" "+o.Ref+": "+o.Reason, ": "))
		}
	}
	return lines
}

func indented(texts []string) []string {
	var all []string
	for _, text := range texts {
		for line := range strings.Lines(text) {
			all = append(all, "  "+strings.TrimRight(line, "\n"))
		}
	}
	return all
}

func runbookRunPage(s *output.Sheet, r *engine.Run) {
	s.Section("Run")
	if !r.DryRun {
		s.Field("run", r.ID)
	}
	s.Field("runbook", r.Runbook+": "+r.Title)
	s.Field("state", string(r.State))
	s.Field("verdict", string(r.Verdict))
	if !r.EndedAt.IsZero() {
		s.Field("took", sandbox.FormatElapsed(r.EndedAt.Sub(r.StartedAt)))
	}
	s.Field("steps", fmt.Sprintf("%d done, %d failed, %d skipped, %d left, %d not selected",
		r.Count(engine.Done), r.Count(engine.Failed), r.Count(engine.Skipped), r.Count(engine.Pending)+r.Count(engine.Running), r.Count(engine.NotSelected)))
	s.Section("Causes")
	for _, c := range r.Causes {
		s.Text(namedCauseText(c))
	}
	if len(r.Causes) == 0 {
		s.Text("the diagnosis names none")
	}
	stepTable(s, r)
	actTables(s, r)
	callSection(s, r)
}

func namedCauseText(c engine.Cause) string {
	text := fmt.Sprintf("%s (%s)", c.Title, c.Confidence)
	if len(c.Refs) > 0 {
		text += ": " + strings.Join(c.Refs, ", ")
	}
	switch {
	case c.See != "":
		text += "; `sbx runbook run " + c.See + "` is about it"
	case !c.Branch:
		text += "; no step of this runbook ends that: `sbx cleanup --stuck --where 'cause == \"" + c.ID + "\"'` plans it"
	}
	return text
}

func stepTable(s *output.Sheet, r *engine.Run) {
	var rows [][]any
	for _, step := range r.Steps {
		if step.State == engine.NotSelected {
			continue
		}
		took := ""
		if !step.EndedAt.IsZero() {
			took = sandbox.FormatElapsed(step.Took)
		}
		allowed := ""
		if step.ETA > 0 { // a check of what was read takes no time
			allowed = sandbox.FormatDuration(step.ETA)
		}
		rows = append(rows, []any{stepName(step), string(step.State), string(step.Verdict), took, allowed, step.Reason})
	}
	s.Section("Steps")
	s.Table([]string{"STEP", "STATE", "VERDICT", "TOOK", "ALLOWED", "WHY"}, rows)
}

func actTables(s *output.Sheet, r *engine.Run) {
	for _, step := range r.Steps {
		a := step.Act
		if a == nil || len(a.Targets)+len(a.Outcomes)+len(a.Kept) == 0 {
			continue
		}
		s.Section("Act " + stepName(step) + ": " + a.Line)
		if a.RunID != "" {
			s.Text("allowed by " + a.Allowed + "; its record: sbx cleanup show " + a.RunID)
		}
		rows, told := [][]any{}, map[string]bool{}
		for _, o := range a.Outcomes {
			rows, told[o.Ref] = append(rows, []any{o.Ref, string(o.Outcome), o.Reason}), true
		}
		for _, t := range a.Targets {
			if !told[t.Ref] {
				rows = append(rows, []any{t.Ref, "planned", t.Reason})
			}
		}
		for _, t := range a.Kept {
			rows = append(rows, []any{t.Ref, "stays", t.Reason})
		}
		s.Table([]string{"REF", "OUTCOME", "REASON"}, rows)
	}
}

func callSection(s *output.Sheet, r *engine.Run) {
	now := callsNow(r)
	if len(now) == 0 {
		return
	}
	s.Section("Call now")
	for _, c := range now {
		s.Text(callText(c))
		for _, line := range indented([]string{c.Text, "condition " + runbook.NameCauses(c.When)}) {
			s.Text(line)
		}
	}
}

// ShowRunbookRuns lists runs.
func ShowRunbookRuns(p *output.Printer, schema string, runs []engine.Run, errs []error) error {
	list, err := output.NewList(p, output.ListSpec[engine.Run]{
		Schema: schema, Columns: RunbookRunColumns(), Empty: "no runbook has been run here; `sbx runbook run ID` runs one",
	})
	if err != nil {
		return err
	}
	for _, r := range runs {
		_ = list.Add(r) // Close gives the error of stdout
	}
	for _, err := range errs {
		list.Fail(err)
	}
	if len(runs) > 0 {
		list.Succeeded()
	}
	return list.Close()
}

// ShowRunbookRun shows a run as it is on record. One that cannot be trusted to its end is a finding.
func ShowRunbookRun(p *output.Printer, schema string, r *engine.Run) error {
	list, err := output.NewList(p, output.ListSpec[engine.Step]{
		Schema: schema, Columns: RunbookStepColumns(), Human: func(s *output.Sheet, _ []engine.Step) { runbookRunPage(s, r) },
	})
	if err != nil {
		return err
	}
	for _, s := range r.Steps {
		_ = list.Add(s) // Close gives the error of stdout
	}
	list.Set(runbookRunKeys(r))
	if r.Broken != "" {
		list.Fail(fault.New(fault.KindFound, "the record of %s was changed or damaged: %s", r.ID, r.Broken))
	}
	if err := r.Unreadable.Error(r.ID); err != nil {
		list.Fail(err)
	}
	list.Succeeded()
	return list.Close()
}
