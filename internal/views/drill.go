package views

import (
	"strconv"

	"sbx/internal/drill"
	"sbx/internal/output"
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
	steps := make([]any, 0, len(r.Steps))
	for _, s := range r.Steps {
		steps = append(steps, output.Fields{
			{Key: "id", Value: s.ID},
			{Key: "title", Value: s.Title},
			{Key: "eta_seconds", Value: output.Seconds(s.ETA)},
			{Key: "took_seconds", Value: output.Seconds(s.Took)},
			{Key: "answers", Value: s.Answers},
		})
	}
	return output.Fields{
		{Key: "run", Value: r.Run},
		{Key: "enforcement", Value: string(r.Enforcement)},
		{Key: "cases", Value: cases},
		{Key: "steps", Value: steps},
		{Key: "left_behind", Value: len(r.LeftBehind)},
	}
}

// DrillPage shows people how a drill went.
func DrillPage(s *output.Sheet, r drill.Report) {
	s.Section("Investigation")
	for _, step := range r.Steps {
		s.Text(step.Title + " (took " + sandbox.FormatElapsed(step.Took) + ", the runbook allows " + sandbox.FormatDuration(step.ETA) + ")")
		for _, a := range step.Answers {
			s.Text("  " + a)
		}
	}
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
