package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// How much of the output a page shows: less where problems are shown, too.
const (
	pageLines  = 5
	fewLines   = 3
	pageLabels = 6
)

// ShowInspection shows one sandbox in full; of one that is gone what is on record, as an
// error. Timeline: the page for people has its events, as all of p.Verbose has.
func ShowInspection(p *output.Printer, schema string, r *look.DiagnoseResult, program string, timeline bool) error {
	spec := output.ItemSpec[Inspection]{Schema: schema, Columns: InspectColumns(), Human: func(s *output.Sheet, i Inspection) {
		full := p.Verbose > 0
		if i.page(s, full); timeline && !full && i.Missing == nil {
			i.pageTimeline(s)
		}
	}}
	i := *InspectionOf(p, r, program)
	if i.Missing != nil {
		return output.ShowItemAs(p, spec, i, i.Missing, i.Missing)
	}
	return output.ShowItem(p, spec, i, r.Errors...)
}

// page is the page of one sandbox for both inspect and diagnose. Its first screen has the verdict, what
// to type, what is wrong with the evidence, and the facts; full adds the rest.
func (i Inspection) page(s *output.Sheet, full bool) {
	s.Section(ops.WithDetail(i.Ref().String(), i.Name))
	if i.Task != nil {
		s.Field("task", taskWords(i.Task))
	}
	s.FieldTone("verdict", i.verdictText(), StuckTone(i.Verdict.Stuck))
	addNext(s, i.Program, i.Next())
	lines := pageLines
	if i.pageProblems(s, full) {
		lines = fewLines
	}
	i.pageFacts(s)
	i.pageOutput(s, lines)
	if full {
		i.addDetails(s)
	}
}

// verdictText is the verdict of what lives, and how what has ended did so.
func (i Inspection) verdictText() string {
	text := i.Verdict.Reason
	if i.State.Ended() {
		text = i.endedWords()
		_, words, _ := strings.Cut(i.Verdict.Reason, ": ")
		text = joinKnown(": ", text, words)
	}
	if i.Missing != nil {
		absence := "it no longer exists"
		if i.Ended != nil {
			absence = i.Ended.Absence()
		}
		text += "; " + absence + "; this is what is on record"
	}
	return text
}

// pageProblems ranks the causes with what proves them and why not the next one, and has the warnings
// of the runbook. False = nothing is wrong.
func (i Inspection) pageProblems(s *output.Sheet, full bool) bool {
	causes, flags := i.Causes, i.Flags
	if !full {
		causes = slices.DeleteFunc(slices.Clone(causes), func(c triage.Finding) bool { return c.Cause == sandbox.CauseOrphan && c.Confidence == sandbox.Hint })
		flags = slices.DeleteFunc(slices.Clone(flags), func(f triage.Flag) bool { return f.Verdict != sandbox.True || f.Severity == triage.Info })
		if len(causes)+len(flags) == 0 {
			return false
		}
	}
	s.Section("Problems")
	addCauses(s, causes, full)
	addFlags(s, flags, full)
	return true
}

// pageFacts are one line for each subject, with what is known of it.
func (i Inspection) pageFacts(s *output.Sheet) {
	s.Section("Facts")
	addKnown(s, "task", joinKnown(", ", i.TaskID, joinWords("agent type", i.AgentType)))
	addKnown(s, "command", i.Command)
	s.Field("state", i.stateText())
	if i.Ended != nil {
		s.Field("ended by", i.Ended.Sentence(i.Now))
	}
	if i.Last != nil {
		s.Field("last seen", string(i.Last.Sandbox.State)+" "+sandbox.FormatElapsed(max(0, i.Now.Sub(i.Last.At)))+" ago, by an earlier look of sbx")
	}
	addKnown(s, "owner", i.Owner)
	addKnown(s, "team", i.Labels[teamLabel])
	addKnown(s, "labels", i.labelText())
	addKnown(s, "template", i.Template)
	addKnown(s, "limits", i.limitText())
	addKnown(s, "end", i.EndNote)
	if i.Used != nil {
		text := i.Used.Words()
		if i.Missing != nil && !i.Used.Trend.At.IsZero() {
			text += ", " + sandbox.FormatElapsed(max(0, i.Now.Sub(i.Used.Trend.At))) + " ago"
		}
		s.FieldTone("usage", text, max(i.Used.CPUTone(), i.Used.MemoryTone()))
	} else if i.Missing == nil {
		s.Field("usage", UnknownReason(i.Seen.Usage.Err))
	}
	if !i.State.Ended() && i.Missing == nil {
		s.FieldTone("health", i.healthText(), i.HealthTone())
	}
	for _, one := range i.Steps {
		if one.ID == "cleanup" && one.Answers[0].Known { // whether it runs
			s.Field(one.Label(), briefAnswers(one.Answers, standsAbove))
		}
	}
}

// stateText is the state, for how long, and until when.
func (i Inspection) stateText() string {
	text := string(i.State)
	switch {
	case i.State.Ended() && i.EndedAt.IsZero():
		return text
	case i.State.Ended():
		return text + " at " + i.EndedAt.UTC().Format(time.RFC3339) + ", " + sandbox.FormatDuration(i.Now.Sub(i.EndedAt)) + " ago"
	case i.Missing != nil:
		return text + joinWords("; it was", i.RawState)
	}
	if age, source := i.Age(i.Now); source != sandbox.AgeUnknown {
		text += ", " + sandbox.FormatDuration(age) + " old"
		if source == sandbox.AgeFirstSeen {
			text += " at least"
		}
	}
	if i.ExpiresAt.After(i.Now) {
		text += ", expires in " + sandbox.FormatDuration(i.ExpiresAt.Sub(i.Now))
	}
	if idle, known := i.Idle(i.Now); known {
		text += ", last activity " + sandbox.FormatElapsed(idle) + " ago"
	}
	return text
}

// labelText are the first labels, without those that other lines show.
func (i Inspection) labelText() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(i.Labels)) {
		if value := i.Labels[key]; value != i.TaskID && value != i.AgentType && value != i.Owner && key != teamLabel {
			pairs = append(pairs, key+"="+value)
		}
	}
	return sandbox.FormatFirst(pairs, pageLabels)
}

func (i Inspection) limitText() string {
	l := i.Limits
	var parts []string
	if l.MemoryBytes != nil {
		parts = append(parts, MebibytesText(l.MemoryBytes)+" MiB memory")
	}
	if l.CPU != nil {
		parts = append(parts, Decimal(*l.CPU, 2)+" cores")
	}
	if l.DiskBytes != nil {
		parts = append(parts, MebibytesText(l.DiskBytes)+" MiB disk")
	}
	if l.PIDs != nil {
		parts = append(parts, fmt.Sprintf("%d processes", *l.PIDs))
	}
	if l.Enforcement != "" && !l.Enforcement.Hard() {
		parts = append(parts, "enforcement: "+string(l.Enforcement))
	}
	return strings.Join(parts, ", ")
}

// healthText is what may be done next, with the evidence where that is not to be used.
func (i Inspection) healthText() string {
	h := i.Seen.Health
	if h.Err != nil {
		return UnknownReason(h.Err)
	}
	if h.Got.Verdict == sandbox.True {
		return string(i.conditionOf())
	}
	return ClaimWithEvidence(string(i.conditionOf()), h.Got.Evidence)
}

func (i Inspection) pageOutput(s *output.Sheet, lines int) {
	last := i.Seen.Logs.Got[max(0, len(i.Seen.Logs.Got)-lines):]
	if i.Missing != nil && len(last) == 0 {
		return // none was kept
	}
	title := "Last output"
	if i.Logs != nil && i.Logs.Errors > 0 {
		title += fmt.Sprintf(", errors in %d of %d lines", i.Logs.Errors, i.Logs.Lines)
	}
	s.Section(title)
	switch {
	case i.Seen.Logs.Err != nil:
		s.Text(UnknownReason(i.Seen.Logs.Err))
	case len(last) == 0:
		s.Text("no output yet")
	}
	m := triage.NewMatcher()
	rows := make([][]any, len(last))
	for n, l := range last {
		pattern, _ := m.Match(l.Text)
		rows[n] = []any{ClockTime(l.At, i.Now), l.Stream, l.Text, pattern.ID}
	}
	s.Compact([]string{"at", "stream", "line", "pattern"}, rows)
}

// NextLine is what to type about a sandbox of a list, and what for; as inspect advises. Program is what sbx is called.
func (r SandboxRow) NextLine(program string) string {
	first := Inspection{SandboxRow: r}.nextSteps()[0]
	return program + " " + first.Command + "  # " + first.Why
}

// Next is what to type, the best first. A command that prints what the page shows is left out.
func (i Inspection) Next() []step {
	steps := i.nextSteps()
	switch {
	case i.Missing != nil:
		steps = i.HigherLimit()
		if i.Ended != nil && i.Ended.Run != "" {
			steps = append(steps, step{"see the run that ended it", "cleanup show " + ShellWord(i.Ended.Run)})
		}
	case i.Seen.Logs.Err == nil && len(i.Seen.Logs.Got) <= fewLines: // the page has all the output that there is
		steps = slices.DeleteFunc(steps, func(s step) bool {
			return strings.HasPrefix(s.Command, "logs ") && !strings.HasSuffix(s.Command, " -f")
		})
	}
	if i.Task != nil {
		steps = append(steps, attemptsOf(i.Task))
	}
	return steps
}

func (i Inspection) nextSteps() []step {
	ref, stuck := ShellWord(i.Ref().String()), i.Verdict.Stuck == sandbox.True
	logs := step{"read its output", "logs " + ref + " --tail 100"}
	end := step{"end it", "terminate " + ref}
	check := step{"check the provider", "doctor --provider " + ShellWord(i.Provider)}
	switch {
	case i.State == sandbox.StateRunning:
		return append(i.HigherLimit(), i.nextOfRunning(ref, logs, end)...)
	case i.State == sandbox.StateProvisioning && stuck:
		return []step{end, check}
	case i.State == sandbox.StateProvisioning && i.cannotStart():
		return []step{{"end it: it does not start", end.Command}}
	case i.State == sandbox.StateProvisioning:
		return []step{{"wait until it runs", "wait " + ref + " --for running"}}
	case i.State == sandbox.StateTerminating && stuck:
		return []step{{"ask again for its end", end.Command}, check}
	case i.State == sandbox.StateTerminating:
		return []step{{"wait for its end", "wait " + ref + " --for ended"}}
	case i.State.Ended():
		return append([]step{logs}, i.HigherLimit()...)
	case i.State == sandbox.StatePaused, i.State == sandbox.StateStopped:
		return []step{logs, {"delete what the provider keeps of it", end.Command + " --delete"}}
	}
	return []step{check, logs}
}

// cannotStart says that its provider reports that its start has failed.
func (i Inspection) cannotStart() bool {
	return i.Seen.Health.Err == nil && i.Seen.Health.Got.Condition == providers.ConditionRecreate
}

// nextOfRunning advises by behaviour: a missing owner, or a fault of the profile, is no reason to watch or end a sandbox.
func (i Inspection) nextOfRunning(ref string, logs, end step) []step {
	watch := step{"see how it develops", "top " + ref + " --samples 10"}
	own := slices.DeleteFunc(slices.Clone(i.Verdict.Findings), func(f triage.Finding) bool { return f.Cause == sandbox.CauseOrphan || f.Wide })
	switch {
	case i.Verdict.Cause == sandbox.CauseGhost:
		return []step{compareRecords()}
	case i.Verdict.Stuck == sandbox.True:
		return []step{end, logs}
	case len(own) > 0 && own[0].Confidence != sandbox.Hint:
		return []step{watch, logs, end}
	case i.Verdict.Stuck == sandbox.Unknown:
		return []step{watch, logs, {"end it, if you know that it does no work", end.Command}}
	case len(own) > 0:
		return []step{watch, logs}
	}
	return []step{{"follow its output", "logs " + ref + " -f"}}
}

// HigherLimit is the way on where a limit was reached: twice the limit.
func (i Inspection) HigherLimit() []step {
	cause := i.Verdict.Cause
	if i.Exit != nil {
		cause = i.Exit.Cause
	}
	isLimit := func(f triage.Finding) bool {
		return f.Cause == sandbox.CauseProcessLimit && f.Confidence != sandbox.Hint
	}
	switch {
	case i.Limits.PIDs != nil && (cause == sandbox.CauseProcessLimit || i.Exit == nil && slices.ContainsFunc(i.Verdict.Findings, isLimit)):
		return []step{{"start it with a higher limit of processes", fmt.Sprintf("create --pids %d -- COMMAND", 2**i.Limits.PIDs)}}
	case i.Limits.MemoryBytes == nil:
		return nil
	}
	switch cause {
	case sandbox.CauseOOM, sandbox.CauseOOMChild, sandbox.CauseMemoryWatchdog:
		return []step{{"start it with more memory", fmt.Sprintf("create --memory %dM -- COMMAND", 2**i.Limits.MemoryBytes/sandbox.MiB)}}
	default:
		return nil
	}
}
