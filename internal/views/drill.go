package views

import (
	"strconv"

	"sbx/internal/drill"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
)

// DrillFields are a drill as data.
func DrillFields(r drill.Report) output.Fields {
	cases := make([]any, 0, len(r.Cases))
	for _, c := range r.Cases {
		cases = append(cases, output.Fields{
			{Key: "name", Value: c.Name},
			{Key: "ref", Value: c.Ref.String()},
			{Key: "cause", Value: string(c.Cause)},
			{Key: "expected", Value: string(c.Expected)},
			{Key: "confidence", Value: string(c.Confidence)},
			{Key: "evidence", Value: EvidenceList(c.Evidence)},
			{Key: "outcome", Value: string(c.Outcome)},
			{Key: "ok", Value: c.OK},
		})
	}
	return output.Fields{
		{Key: "run", Value: r.Run},
		{Key: "enforcement", Value: string(r.Enforcement)},
		{Key: "cases", Value: cases},
		{Key: "steps", Value: drillReads(r.Runbook)},
		{Key: "runbook", Value: drillRunbook(r.Runbook)},
		{Key: "left_behind", Value: len(r.LeftBehind)},
	}
}

// drillReads are the steps of the diagnosis that read something.
func drillReads(run *engine.Run) []any {
	steps := []any{}
	if run == nil {
		return steps
	}
	for _, s := range run.Steps {
		if s.Section != engine.SectionDiagnosis || s.Kind != runbook.KindCollect {
			continue
		}
		answers := []any{}
		for _, a := range s.Answers {
			answers = append(answers, a.Question+" "+a.Answer)
		}
		steps = append(steps, output.Fields{
			{Key: "id", Value: s.ID},
			{Key: "title", Value: s.Title},
			{Key: "eta_seconds", Value: output.Seconds(s.ETA)},
			{Key: "took_seconds", Value: output.Seconds(s.Took)},
			{Key: "answers", Value: answers},
		})
	}
	return steps
}

// drillRunbook is the whole run; nil = none was begun.
func drillRunbook(run *engine.Run) any {
	if run == nil {
		return nil
	}
	steps := []any{}
	for _, s := range run.Steps {
		record, fields := stepRecord(s), output.Fields{}
		for _, key := range output.Names(RunbookStepColumns()) {
			fields = append(fields, output.Field{Key: key, Value: record[key]})
		}
		steps = append(steps, fields)
	}
	id := TextOrNil(run.ID)
	if run.DryRun {
		id = nil
	}
	return output.Fields{
		{Key: "id", Value: run.Runbook},
		{Key: "run_id", Value: id},
		{Key: "state", Value: string(run.State)},
		{Key: "verdict", Value: string(run.Verdict)},
		{Key: "took_seconds", Value: output.Seconds(run.Took)},
		{Key: "engine_seconds", Value: output.Seconds(run.Own)},
		{Key: "steps", Value: steps},
	}
}

// drillSteps shows the steps of a run as they were done, without those that do not apply.
func drillSteps(s *output.Sheet, run *engine.Run) {
	if run == nil {
		s.Section("Investigation")
		return
	}
	titles := map[bool]string{true: "Investigation", false: "Mitigation"}
	shown := ""
	for _, step := range run.Steps {
		title := titles[step.Section == engine.SectionDiagnosis]
		if step.Section == engine.SectionVerification {
			title = "Verification"
		}
		lines := drillStepLines(step)
		if title != shown && (len(lines) > 0 || title == "Investigation") {
			s.Section(title)
			shown = title
		}
		for _, line := range lines {
			s.Text(line)
		}
	}
}

func drillStepLines(step engine.Step) []string {
	lines := RunbookStepLines(step)
	if len(lines) == 0 {
		return nil
	}
	head := step.Title
	if !step.EndedAt.IsZero() && step.ETA > 0 {
		head += " (took " + sandbox.FormatElapsed(step.Took) + ", the runbook allows " + sandbox.FormatDuration(step.ETA) + ")"
	}
	if step.Kind != runbook.KindCollect && step.Verdict != "" {
		head += ": " + string(step.Verdict)
	}
	if step.State != engine.Done {
		head += ": " + string(step.State)
	}
	if step.Reason != "" {
		head += ": " + step.Reason
	}
	return append([]string{head}, lines[1:]...)
}

// DrillPage shows people how a drill went.
func DrillPage(s *output.Sheet, r drill.Report) {
	drillSteps(s, r.Runbook)
	s.Section("Verdicts")
	rows := make([][]any, 0, len(r.Cases))
	for _, c := range r.Cases {
		rows = append(rows, []any{c.Name, c.Ref.String(), DrillCauseWord(c), string(c.Confidence), string(c.Outcome), DrillVerdictWord(c)})
	}
	s.Table([]string{"CASE", "REF", "CAUSE", "CONFIDENCE", "OUTCOME", "VERDICT"}, rows)
	for _, c := range r.Cases {
		s.Text(c.Name + ": " + c.About)
		for _, e := range c.Evidence {
			s.Text("  " + e.What + " = " + e.Value + " (" + e.Source + ")")
		}
	}
	s.Section("Result")
	s.Field("memory limit held by", string(r.Enforcement))
	if run := r.Runbook; run != nil && !run.DryRun {
		text := run.Runbook + ": " + string(run.State)
		if run.Error != "" {
			text += ", " + run.Error
		}
		s.Field("runbook", text)
		s.Field("its record", "`sbx runbook status "+run.ID+"`")
	}
	s.Field("left behind", strconv.Itoa(len(r.LeftBehind)))
	if r.Kept {
		s.Field("kept", "for an hour at most; `sbx drill --clean` removes them")
	}
}

// wasJudged says that the rules were asked: not so in a drill that was interrupted.
func wasJudged(c drill.Case) bool { return c.Confidence != "" }

// DrillVerdictWord says in one word how a case went.
func DrillVerdictWord(c drill.Case) string {
	switch {
	case c.OK:
		return "right"
	case !wasJudged(c) && c.Why == "":
		return "not judged"
	}
	return "WRONG: " + c.Why
}

// DrillCauseWord is the cause that was found, or why none was.
func DrillCauseWord(c drill.Case) string {
	if wasJudged(c) && c.Cause == sandbox.CauseNone {
		return "none"
	}
	return string(c.Cause)
}

// ShowDrill shows how a drill went; err is its verdict, or what kept it from one.
func ShowDrill(p *output.Printer, schema string, r drill.Report, err error) error {
	return showDrill(p, schema, r, err, func(s *output.Sheet) { DrillPage(s, r) })
}

// ShowDrillCleaning shows what was removed of earlier drills.
func ShowDrillCleaning(p *output.Printer, schema string, r drill.Report, err error) error {
	return showDrill(p, schema, r, err, func(s *output.Sheet) {
		s.Text("removed " + strconv.Itoa(len(r.Cases)) + ", left behind " + strconv.Itoa(len(r.LeftBehind)))
	})
}

func showDrill(p *output.Printer, schema string, r drill.Report, err error, page func(*output.Sheet)) error {
	doc := output.Document{Schema: schema, Fields: DrillFields(r), Human: page}
	if err != nil {
		return p.ShowAs(doc, err, err)
	}
	return p.Show(doc)
}
