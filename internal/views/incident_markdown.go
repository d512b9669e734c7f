package views

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/incident"
	"sbx/internal/ops"
	"sbx/internal/ops/incidents"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

const (
	notKnown    = "not known"
	needsPerson = "needs a person"
	nobodyTold  = "Nobody was told by sbx."
	// maxReportActs bounds the table of acts; `sbx audit` has all.
	maxReportActs = 200
)

// IncidentMarkdown is the report as a page of Markdown. No text of others is mark-up in it.
func IncidentMarkdown(r *incidents.IncidentReport) string {
	w := &reportPage{r: r}
	w.writeHead()
	w.writeMoments()
	w.writeTimeline()
	w.writeEvidence()
	w.writeCauses()
	w.writeActs()
	w.writeChecks()
	w.writeEscalations()
	w.writeSteps()
	w.writeAfterwards()
	return strings.TrimRight(w.b.String(), "\n") + "\n"
}

type reportPage struct {
	r *incidents.IncidentReport
	b strings.Builder
}

func (w *reportPage) line(format string, args ...any) { fmt.Fprintf(&w.b, format+"\n", args...) }

func (w *reportPage) section(title string) { w.line("## %s\n", title) }

// table writes a table; without rows the sentence instead. The cells are Markdown already.
func (w *reportPage) table(empty string, head []string, rows [][]string) {
	if len(rows) == 0 {
		w.line("%s\n", empty)
		return
	}
	w.line("| %s |", strings.Join(head, " | "))
	w.line("|%s", strings.Repeat("---|", len(head)))
	for _, row := range rows {
		w.line("| %s |", strings.Join(row, " | "))
	}
	w.line("")
}

// reportHeading is what is reported, and its title.
func reportHeading(r *incidents.IncidentReport) (what, title string) {
	s := r.Scope
	what = s.ID
	if what == "" {
		what = spanText(s)
	}
	return what, cmp.Or(s.Title, "no title")
}

// doneText is what was done in the time of a report, and how the sandboxes stood at its end.
func doneText(r *incidents.IncidentReport) string {
	parts := []string{cmp.Or(ops.CountEnds(r.Acts).Text(), noEndText(r.Acts))}
	for _, f := range r.Figures {
		switch word := map[string]string{ops.FigureStuck: "stuck", ops.FigureUnjudged: "not judged"}[f.Name]; {
		case word == "", f.After == nil, f.Name == ops.FigureUnjudged && *f.After == 0:
		default:
			parts = append(parts, fmt.Sprintf("%d %s", *f.After, word))
		}
	}
	return strings.Join(parts, "; ")
}

// noEndText is for a time in which no verb that mitigates has ended anything: what others have ended, such as tasks at
// their end, stands among the acts all the same.
func noEndText(acts []runs.Act) string {
	verbs := map[string]bool{}
	for _, a := range acts {
		if a.Ends() {
			verbs[a.Verb] = true
		}
	}
	if len(verbs) > 0 {
		return "nothing was ended but by " + strings.Join(slices.Sorted(maps.Keys(verbs)), ", ")
	}
	return "nothing was ended"
}

// spanText is the time of a report.
func spanText(s incidents.Scope) string {
	until := "now"
	if !s.Until.IsZero() {
		until = mdTime(s.Until)
	}
	return mdTime(s.Since) + " to " + until
}

func (w *reportPage) writeHead() {
	s := w.r.Scope
	what, title := reportHeading(w.r)
	w.line("# Incident %s: %s\n", what, mdText(title))
	w.line("%s.\n", mdText(doneText(w.r)))
	book := notKnown
	if w.r.Plan.Runbook != "" {
		book = mdCode(w.r.Plan.Runbook) + " (" + mdText(w.r.Plan.Title) + ")"
	}
	w.line("- Time: %s", spanText(s))
	w.line("- Severity: %s", mdText(cmp.Or(w.r.Severity, notKnown)))
	w.line("- Alert: %s", mdText(cmp.Or(w.r.Alert, notKnown)))
	w.line("- Runbook: %s", book)
	w.line("- Providers: %s", mdText(cmp.Or(strings.Join(s.Providers, ", "), "all that are configured")))
	if s.By.Who != "" {
		w.line("- Begun by: %s on %s", mdText(s.By.Who), mdText(s.By.Host))
	}
	w.line("- This report: %s", mdTime(w.r.At))
	w.line("")
	for _, p := range w.r.Problems {
		w.line("> **Incomplete:** %s\n", mdText(p))
	}
}

func (w *reportPage) writeMoments() {
	w.section("Times")
	detected := w.r.Moment(incident.MilestoneDetected).At
	var rows [][]string
	for _, m := range w.r.Moments {
		at, after := notKnown, "-"
		if !m.At.IsZero() {
			at = mdTime(m.At)
			if m.Milestone != incident.MilestoneDetected && !detected.IsZero() {
				after = sandbox.FormatDuration(m.At.Sub(detected).Round(time.Second))
			}
		}
		rows = append(rows, []string{string(m.Milestone), at, after, mdText(m.Source), mdText(m.Who)})
	}
	w.table("", []string{"milestone", "at", "after detection", "source", "by"}, rows)
}

func (w *reportPage) writeTimeline() {
	w.section("Timeline")
	var rows [][]string
	for _, e := range w.r.Timeline {
		rows = append(rows, []string{mdTime(e.At), mdText(e.Who), mdText(e.Kind), mdText(EventText(e))})
	}
	w.table("Nothing is on record.", []string{"at", "by", "what", "text"}, rows)
}

func (w *reportPage) writeEvidence() {
	w.section("Evidence")
	var rows [][]string
	for _, f := range w.r.Flags {
		rows = append(rows, []string{mdText(f.Title), mdText(cmp.Or(f.Severity, "-")), mdEvidence(f.Evidence), mdTime(f.At), mdCode("sbx " + f.Verb)})
	}
	w.table("No verb has raised a flag.", []string{"flag", "severity", "evidence", "last seen", "by"}, rows)
}

func (w *reportPage) writeCauses() {
	w.section("Causes")
	var rows [][]string
	for _, c := range w.r.Causes {
		rows = append(rows, []string{mdText(c.Title), string(c.Confidence), scoreText(c), mdEvidence(c.Evidence), mdText(cmp.Or(c.WhyNot, "-"))})
	}
	w.table("No diagnosis has named a cause.", []string{"cause", "confidence", "score", "evidence", "why not"}, rows)
}

func (w *reportPage) writeActs() {
	w.section("What was done")
	var figures [][]string
	for _, f := range w.r.Figures {
		figures = append(figures, []string{mdText(f.Name), mdFigure(f.Before, f.BeforeAt), mdFigure(f.After, f.AfterAt)})
	}
	w.table("No figure of all sandboxes is on record.", []string{"figure", "before", "after"}, figures)
	var rows [][]string
	ends, records := 0, map[string]int{}
	for _, a := range w.r.Acts {
		if !a.Ends() { // hundreds of adopted records would bury the ends
			records[verbText(a)]++
			continue
		}
		if ends++; ends > maxReportActs {
			continue
		}
		outcome := notKnown
		if a.Outcome != "" {
			outcome = string(a.Outcome)
		}
		rows = append(
			rows,
			[]string{
				mdTime(a.At), mdText(a.Actor.Who), mdText(verbText(a)), mdCode(a.Ref.String()), mdText(joinKnown("; ", a.Reason, a.Detail)), outcome,
				mdCode(a.Run),
			},
		)
	}
	none := "Nothing was terminated, deleted or repaired."
	if len(records) > 0 {
		none = "Nothing was terminated or deleted."
	}
	w.table(none, []string{"at", "by", "verb", "sandbox", "reason", "outcome", "run"}, rows)
	if more := ends - maxReportActs; more > 0 {
		w.line("and %d more: `sbx audit` lists all.\n", more)
	}
	if len(records) > 0 {
		w.line("Records and later ends: %s: `sbx audit` lists them.\n", mdText(sandbox.FormatCounts(records)))
	}
}

func (w *reportPage) writeChecks() {
	w.section("Verification")
	var rows [][]string
	for _, c := range w.r.Checks {
		rows = append(rows, []string{c.ID, mdText(c.Title), mdText(cmp.Or(c.Value, notKnown)), mdText(c.Target), metWord(c.Verdict), mdTime(c.At)})
	}
	w.table("`sbx verify` was not run.", []string{"id", "target", "value", "bound", "result", "checked"}, rows)
}

// scoreText says how much of what is known of a cause speaks for it, and how much is known.
func scoreText(c incidents.SeenCause) string {
	return fmt.Sprintf("%.2f; %.0f %% of its symptoms are known", c.Score, c.Coverage*100)
}

func (w *reportPage) writeEscalations() {
	w.section("Escalations")
	if !slices.ContainsFunc(w.r.Escalations, incidents.Escalation.WasTold) {
		w.line("%s\n", nobodyTold)
	}
	var rows [][]string
	for _, e := range w.r.Escalations {
		rows = append(rows, []string{mdTime(e.At), mdText(toldText(e)), mdText(cmp.Or(e.Level, "-")), mdText(e.Why)})
	}
	if len(rows) > 0 {
		w.table("", []string{"at", "who", "level", "why"}, rows)
	}
}

func (w *reportPage) writeSteps() {
	w.section("Steps of the runbook")
	runs := runsOf(w.r.Steps)
	for _, run := range runs {
		w.line("Run %s of %s: %s\n", mdCode(run[0].Run), mdCode(run[0].Runbook), stepCounts(run))
		w.writeRun(run)
	}
	if len(runs) == 0 {
		w.line("No runbook was run with `sbx runbook run`.\n")
		return
	}
	eta, took := stepTimes(lastRun(w.r.Steps))
	w.line("ETA of the steps that were done in the last run: %s; they took %s.\n", sandbox.FormatDuration(eta), sandbox.FormatDuration(took.Round(time.Second)))
}

func (w *reportPage) writeRun(steps []incidents.Step) {
	var rows [][]string
	for _, s := range steps {
		rows = append(
			rows,
			[]string{
				mdCode(stepLabel(s.Number, s.Word, s.ID)), mdText(s.Title), mdText(strings.ReplaceAll(s.State, "_", " ")), mdText(cmp.Or(s.Verdict, "-")),
				sandbox.FormatDuration(s.ETA), sandbox.FormatDuration(s.Took.Round(time.Millisecond)), mdText(joinKnown("; ", s.Text, s.Answer)),
			},
		)
	}
	w.table("", []string{"step", "title", "state", "verdict", "ETA", "took", "result"}, rows)
}

// runsOf are the steps of each run, the runs in the order in which they began.
func runsOf(steps []incidents.Step) [][]incidents.Step {
	var runs [][]incidents.Step
	for _, s := range steps {
		i := slices.IndexFunc(runs, func(run []incidents.Step) bool { return run[0].Run == s.Run })
		if i < 0 {
			runs = append(runs, []incidents.Step{s})
			continue
		}
		runs[i] = append(runs[i], s)
	}
	return runs
}

func lastRun(steps []incidents.Step) []incidents.Step {
	runs := runsOf(steps)
	if len(runs) == 0 {
		return nil
	}
	return runs[len(runs)-1]
}

// stepCounts says how many steps of a run ended in each state. What is not over is not on record.
func stepCounts(run []incidents.Step) string {
	var states, parts []string
	counts := map[string]int{}
	for _, s := range run {
		if counts[s.State]++; counts[s.State] == 1 {
			states = append(states, s.State)
		}
	}
	for _, state := range states {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], mdText(strings.ReplaceAll(state, "_", " "))))
	}
	return strings.Join(parts, ", ") + "."
}

func (w *reportPage) writeAfterwards() {
	w.section("Root cause: questions")
	var rows [][]string
	for _, a := range w.r.Answers {
		answer := "**" + needsPerson + "**"
		if !a.NeedsPerson {
			answer = mdText(a.Answer)
		}
		rows = append(rows, []string{mdCode(a.ID), mdText(a.Ask), answer, mdText(cmp.Or(a.Source, "-"))})
	}
	w.table("The runbook asks no question.", []string{"id", "question", "answer", "source"}, rows)
	w.section("Action items")
	for _, t := range w.r.Tasks {
		who, group := "the command for it is "+mdCode(t.Where), "" // nobody has recorded whether it runs
		if t.Where == "" {
			who = needsPerson
		}
		if t.Group != "" {
			group = " (" + mdText(t.Group) + ")"
		}
		w.line("- [ ] %s%s: %s", mdText(t.Title), group, who)
	}
	if len(w.r.Tasks) == 0 {
		w.line("The runbook names none.")
	}
}
