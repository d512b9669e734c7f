package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/drill"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
)

// DrillKeys are the keys of drill.
type DrillKeys struct {
	Run         string            `json:"run"`         // The run; empty where nothing was staged.
	Enforcement string            `json:"enforcement"` // What enforces limits on this machine; empty where nothing was staged.
	Cases       *[]DrillCaseItem  `json:"cases"`       // The staged sandboxes.
	Steps       *[]DrillStepItem  `json:"steps"`       // The steps of the runbook that read something.
	Runbook     *DrillRunbookItem `json:"runbook"`     // The run of the runbook; null where none was begun.
	LeftBehind  *int              `json:"left_behind"` // How many staged sandboxes are left.
}

// DrillCaseItem is one staged sandbox.
type DrillCaseItem struct {
	Name       string          `json:"name"`       // The scenario.
	Ref        string          `json:"ref"`        // PROFILE/ID.
	Cause      string          `json:"cause"`      // The cause that was found; empty for none.
	Expected   string          `json:"expected"`   // The cause that was staged; empty for none.
	Confidence string          `json:"confidence"` // How sure the found cause is; empty for none.
	Evidence   []EvidenceItem  `json:"evidence"`   // What was seen.
	Outcome    sandbox.Outcome `json:"outcome"`    // What became of it.
	OK         bool            `json:"ok"`         // True: the cause was found, and it was ended.
}

// DrillRunbookItem is the run of a drill's runbook.
type DrillRunbookItem struct {
	ID            string          `json:"id"`             // The runbook.
	RunID         *string         `json:"run_id"`         // The id of the run; null with --keep, which only looks.
	State         string          `json:"state"`          // done, failed, waiting or interrupted.
	Verdict       sandbox.Verdict `json:"verdict"`        // Whether every act has had its effect and every check of the verification holds.
	TookSeconds   float64         `json:"took_seconds"`   // How long the run took.
	EngineSeconds float64         `json:"engine_seconds"` // The part of that which is no read, no wait and no act: the engine itself.
	Steps         []RunStepItem   `json:"steps"`          // All of its steps.
}

// DrillStepItem is one step of the runbook.
type DrillStepItem struct {
	ID          string   `json:"id"`           // Its name.
	Title       string   `json:"title"`        // What it does.
	ETASeconds  float64  `json:"eta_seconds"`  // How long it should take.
	TookSeconds float64  `json:"took_seconds"` // How long it took.
	Answers     []string `json:"answers"`      // What it found.
}

// DrillKeysOf is a drill as documents have it.
func DrillKeysOf(r drill.Report) DrillKeys {
	cases := make([]DrillCaseItem, len(r.Cases))
	for i, c := range r.Cases {
		cases[i] = DrillCaseItem{c.Name, c.Ref.String(), string(c.Cause), string(c.Expected), string(c.Confidence), EvidenceList(c.Evidence), c.Outcome, c.OK}
	}
	return DrillKeys{r.Run, string(r.Enforcement), &cases, new(drillReads(r.Runbook)), drillRunbook(r.Runbook), new(len(r.LeftBehind))}
}

// drillReads are the steps of the diagnosis that read something.
func drillReads(run *engine.Run) (items []DrillStepItem) {
	if run == nil {
		return nil
	}
	for _, s := range run.Steps {
		if s.Section != engine.SectionDiagnosis || s.Kind != runbook.KindCollect {
			continue
		}
		item := DrillStepItem{ID: s.ID, Title: s.Title, ETASeconds: output.Seconds(s.ETA), TookSeconds: output.Seconds(s.Took)}
		for _, a := range s.Answers {
			item.Answers = append(item.Answers, a.Question+" "+a.Answer)
		}
		items = append(items, item)
	}
	return items
}

// drillRunbook is the whole run; nil = none was begun.
func drillRunbook(run *engine.Run) *DrillRunbookItem {
	if run == nil {
		return nil
	}
	item := &DrillRunbookItem{
		ID: run.Runbook, State: string(run.State), Verdict: run.Verdict, TookSeconds: output.Seconds(run.Took), EngineSeconds: output.Seconds(run.Own),
	}
	if !run.DryRun {
		item.RunID = orNil(run.ID)
	}
	for _, s := range run.Steps {
		item.Steps = append(item.Steps, runStepItem(s))
	}
	return item
}

// drillSteps shows the steps of a run as they were done, without those that do not apply.
func drillSteps(s *output.Sheet, run *engine.Run) {
	if run == nil {
		s.Section("Investigation")
		return
	}
	shown := ""
	for _, step := range run.Steps {
		title := step.Heading().Whole()
		if step.Section == engine.SectionDiagnosis {
			title = "Investigation"
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
	lines := RunbookStepTrace(step)
	if len(lines) == 0 {
		return nil
	}
	head := stepHead(step)
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

// DrillPage shows people how a drill went: one line for each case, and the result. Verbose shows the steps
// of the runbook and all evidence instead of the lines.
func DrillPage(s *output.Sheet, r drill.Report, verbose bool) {
	if verbose {
		drillSteps(s, r.Runbook)
		drillVerdicts(s, r)
	} else {
		drillCases(s, r)
	}
	drillResult(s, r)
}

// drillCases are one line for each case: what sbx saw, by which fact, what it did, and the proof.
func drillCases(s *output.Sheet, r drill.Report) {
	held := "a watchdog holds the limits"
	if r.Enforcement.Hard() {
		held = "the kernel holds the limits"
	}
	s.Section("Staged: " + sandbox.FormatCount(len(r.Cases), "sandbox", "sandboxes") + " of real processes; " + held + " (" + string(r.Enforcement) + ")")
	rows := make([][]any, len(r.Cases))
	for i, c := range r.Cases {
		rows[i] = []any{c.Name, DrillCauseWord(c), drillFact(c), drillActWord(c), drillProof(c)}
	}
	s.Table([]string{"CASE", "SBX SAW", "WHY", "SBX DID", "PROOF"}, rows)
	if r.Enforcement.Hard() && !r.Kept {
		s.Text("cgroup empty: the kernel finds no process in the control group of the sandbox")
	}
	for _, c := range r.Cases {
		if !c.OK {
			s.Text(c.Name + ": " + DrillVerdictWord(c))
		}
	}
}

// drillVerdicts are the verdicts with all evidence.
func drillVerdicts(s *output.Sheet, r drill.Report) {
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
}

func drillResult(s *output.Sheet, r drill.Report) {
	right, survived := 0, ""
	for _, c := range r.Cases {
		if c.OK {
			right++
		}
		if c.Healthy && c.OK && c.Outcome == sandbox.OutcomeSkipped {
			survived = "; the healthy one survived"
		}
	}
	s.Section("Result")
	s.Field("cases", fmt.Sprintf("%d of %d are right%s", right, len(r.Cases), survived))
	if run := r.Runbook; run != nil && !run.DryRun {
		text := run.Runbook + ": " + string(run.State)
		if run.Error != "" {
			text += ", " + run.Error
		}
		s.Field("runbook", text)
		s.Field("its steps", "`sbx runbook status "+run.ID+"`")
	}
	switch left := len(r.LeftBehind); {
	case r.Kept:
		s.Field("kept", "for an hour at most; `sbx drill --clean` removes them")
	case left > 0:
		s.Field("left behind", sandbox.FormatCount(left, "sandbox", "sandboxes")+"; `sbx drill --clean` removes them")
	default:
		s.Field("left behind", "nothing")
	}
	s.Field("your fleet", "`sbx diagnose` judges it by the same rules, `sbx` shows it live")
}

// drillFact is the fact that shows best what was staged, else the first one, else what was staged.
func drillFact(c drill.Case) string {
	at := slices.IndexFunc(c.Evidence, func(e sandbox.Evidence) bool { return e.What == c.Fact })
	if at < 0 {
		at = slices.IndexFunc(c.Evidence, func(e sandbox.Evidence) bool { return e.What != drill.ProofEvidence })
	}
	if at < 0 || !wasJudged(c) {
		return c.About
	}
	if c.Cause == sandbox.CauseHungIO { // its name says that it waits
		return c.Evidence[at].Value
	}
	return c.Evidence[at].What + " " + c.Evidence[at].Value
}

// drillActWord says in a word what was done with a case.
func drillActWord(c drill.Case) string {
	switch c.Outcome {
	case sandbox.OutcomeVerified:
		return "terminated"
	case sandbox.OutcomeAlreadyGone:
		return "had ended"
	case sandbox.OutcomeSkipped:
		return "left alone"
	case sandbox.OutcomeNotAttempted:
		return "nothing"
	case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed, sandbox.OutcomeChanged:
	}
	return string(c.Outcome)
}

// drillProof is what proves the end of a case, or that it lives: the strongest of what is known.
func drillProof(c drill.Case) string {
	for _, e := range c.Evidence {
		switch e.What {
		case drill.ProofEvidence:
			proof, _, _ := strings.Cut(e.Value, ", ")
			return proof
		case drill.SurvivalEvidence:
			return "still running"
		}
	}
	return ""
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
	return c.Cause.Label()
}

// ShowDrill shows how a drill went; err is its verdict, or what kept it from one.
func ShowDrill(p *output.Printer, schema string, r drill.Report, err error) error {
	return showDrill(p, schema, r, err, func(s *output.Sheet) { DrillPage(s, r, p.Verbose > 0) })
}

// LiveDrillLine says what became of a live drill.
func LiveDrillLine(r drill.LiveReport) string {
	text := "the drill is over: " + sandbox.FormatCount(r.Staged, "sandbox was", "sandboxes were") + " staged, " + strconv.Itoa(r.Ended) + " had ended; "
	if n := len(r.LeftBehind); n > 0 {
		return text + strconv.Itoa(n) + " could not be removed"
	}
	return text + "all are removed, nothing is left"
}

// ShowDrillCleaning shows what was removed of earlier drills.
func ShowDrillCleaning(p *output.Printer, schema string, r drill.Report, err error) error {
	return showDrill(p, schema, r, err, func(s *output.Sheet) {
		s.Text("removed " + strconv.Itoa(len(r.Cases)) + ", left behind " + strconv.Itoa(len(r.LeftBehind)))
	})
}

func showDrill(p *output.Printer, schema string, r drill.Report, err error, page func(*output.Sheet)) error {
	doc := output.Document{Schema: schema, Fields: output.FieldsOf(DrillKeysOf(r)), Human: page}
	if err != nil {
		return p.ShowAs(doc, err, err)
	}
	return p.Show(doc)
}
