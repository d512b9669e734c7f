package views

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// How much of the output a page shows: less where problems are shown, too.
const (
	pageLines  = 5
	fewLines   = 3
	pageLabels = 6
)

// addPage is what an operator reads, on one screen: the verdict, what to type, what is wrong,
// and the facts. -v adds the rest.
func (i Inspection) addPage(s *output.Sheet) {
	s.Section(i.Ref().String())
	s.FieldTone("verdict", i.verdictText(), StuckTone(i.Verdict.Stuck))
	name := "next"
	for _, n := range i.Next() {
		s.Field(name, i.Program+" "+n.Command+"  # "+n.Why)
		name = "or"
	}
	lines := pageLines
	if i.pageProblems(s) {
		lines = fewLines
	}
	i.pageFacts(s)
	i.pageOutput(s, lines)
}

// verdictText is the verdict of what lives, and how what has ended did so.
func (i Inspection) verdictText() string {
	if !i.State.Ended() {
		return i.Verdict.Reason
	}
	text := string(i.State)
	if i.Exit != nil {
		text += exitWords(*i.Exit)
	}
	if lived := i.EndedAt.Sub(i.CreatedAt); !i.CreatedAt.IsZero() && lived >= time.Second {
		text += ", after " + sandbox.FormatDuration(lived)
	}
	_, words, _ := strings.Cut(i.Verdict.Reason, ": ")
	return joinKnown(": ", text, words)
}

// pageFacts are one line for each subject, with what is known of it.
func (i Inspection) pageFacts(s *output.Sheet) {
	s.Section("Facts")
	addKnown(s, "name", i.Name)
	addKnown(s, "task", joinKnown(", ", i.TaskID, joinWords("agent type", i.AgentType)))
	addKnown(s, "command", i.Command)
	s.Field("state", i.stateText())
	if i.Ended != nil {
		s.Field("ended by", i.Ended.Sentence(i.Now))
	}
	addKnown(s, "owner", i.Owner)
	addKnown(s, "team", i.Labels[teamLabel])
	addKnown(s, "labels", i.labelText())
	addKnown(s, "template", i.Template)
	addKnown(s, "limits", i.limitText())
	s.FieldTone("usage", i.usageText(), i.usageTone())
	if !i.State.Ended() {
		s.FieldTone("health", i.healthText(), i.HealthTone())
	}
	if e := i.Exit; e != nil && len(e.Evidence) > 0 && e.Cause != sandbox.CauseUnknown {
		s.Field("evidence", evidenceText(e.Evidence[0]))
	}
}

func joinKnown(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), separator)
}

// stateText is the state, for how long, and until when.
func (i Inspection) stateText() string {
	text := string(i.State)
	if i.State.Ended() {
		if !i.EndedAt.IsZero() {
			text += " at " + i.EndedAt.UTC().Format(time.RFC3339) + ", " + sandbox.FormatDuration(i.Now.Sub(i.EndedAt)) + " ago"
		}
		return text
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

func (i Inspection) usageText() string {
	if i.Used == nil {
		return UnknownReason(i.Seen.Usage.Err)
	}
	return i.Used.Words()
}

func (i Inspection) usageTone() output.Tone {
	if i.Used == nil {
		return output.Plain
	}
	return max(i.Used.CPUTone(), i.Used.MemoryTone())
}

// healthText is what may be done next, with the evidence where that is not to be used.
func (i Inspection) healthText() string {
	h := i.Seen.Health
	if h.Err != nil {
		return UnknownReason(h.Err)
	}
	parts := []string{string(i.conditionOf())}
	if h.Got.Verdict == sandbox.True {
		return parts[0]
	}
	for _, e := range h.Got.Evidence {
		parts = append(parts, evidenceText(e))
	}
	return strings.Join(parts, ", ")
}

// pageProblems says what is wrong beside the verdict: the warnings of the runbook, and further
// causes. False = nothing.
func (i Inspection) pageProblems(s *output.Sheet) bool {
	var rows [][]any
	for _, f := range i.Flags {
		if f.Verdict == sandbox.True && f.Severity != triage.Info {
			rows = append(rows, []any{string(f.Severity), ClaimWithEvidence(f.Say, f.Evidence)})
		}
	}
	for _, c := range i.Verdict.Findings {
		if c.Cause != i.Verdict.Cause && (c.Cause != sandbox.CauseOrphan || c.Confidence != sandbox.Hint) {
			rows = append(rows, []any{string(c.Confidence), ClaimWithEvidence(c.Title, c.Evidence)})
		}
	}
	if len(rows) == 0 {
		return false
	}
	s.Section("Problems")
	for _, row := range rows {
		s.Field(fmt.Sprint(row[0]), row[1])
	}
	return true
}

func (i Inspection) pageOutput(s *output.Sheet, lines int) {
	last := i.Seen.Logs.Got[max(0, len(i.Seen.Logs.Got)-lines):]
	s.Section("Last output")
	switch {
	case i.Seen.Logs.Err != nil:
		s.Text(UnknownReason(i.Seen.Logs.Err))
	case len(last) == 0:
		s.Text("no output yet")
	}
	m := triage.NewMatcher()
	header := []string{"at", "stream", "line"}
	rows := make([][]any, len(last))
	for n, l := range last {
		pattern, _ := m.Match(l.Text)
		rows[n] = []any{ClockTime(l.At, i.Now), l.Stream, l.Text, pattern.ID}
		if pattern.ID != "" && len(header) == 3 {
			header = append(header, "pattern")
		}
	}
	s.Table(header, rows)
}

// NextLine is what to type about a sandbox of a list, and what for; as inspect advises. Program is what sbx is called.
func (r SandboxRow) NextLine(program string) string {
	first := Inspection{SandboxRow: r}.nextSteps()[0]
	return program + " " + first.Command + "  # " + first.Why
}

// step is a command that helps on, and what for.
type step struct{ Why, Command string }

// compareRecords repairs what is only a record, which no termination does.
func compareRecords() step { return step{"compare records and reality", "reconcile"} }

// Next is what to type, the best first. A command that prints what the page shows is left out.
func (i Inspection) Next() []step {
	steps := i.nextSteps()
	if !i.showsWholeOutput() {
		return steps
	}
	return slices.DeleteFunc(steps, func(s step) bool {
		return strings.HasPrefix(s.Command, "logs ") && !strings.HasSuffix(s.Command, " -f")
	})
}

// showsWholeOutput says that the page has all the output that there is.
func (i Inspection) showsWholeOutput() bool {
	return i.Seen.Logs.Err == nil && len(i.Seen.Logs.Got) <= fewLines
}

func (i Inspection) nextSteps() []step {
	ref := ShellWord(i.Ref().String())
	logs := step{"read its output", "logs " + ref + " --tail 100"}
	end := step{"end it", "terminate " + ref}
	switch i.State {
	case sandbox.StateRunning:
		return append(i.HigherLimit(), i.nextOfRunning(ref, logs, end)...)
	case sandbox.StateProvisioning:
		if i.Verdict.Stuck == sandbox.True {
			return []step{end, {"check the provider", "doctor --provider " + ShellWord(i.Provider)}}
		}
		return []step{{"wait until it runs", "wait " + ref + " --for running"}}
	case sandbox.StateTerminating:
		if i.Verdict.Stuck == sandbox.True {
			return []step{{"ask again for its end", "terminate " + ref}, {"check the provider", "doctor --provider " + ShellWord(i.Provider)}}
		}
		return []step{{"wait for its end", "wait " + ref + " --for ended"}}
	case sandbox.StateTerminated, sandbox.StateFailed:
		return append([]step{logs}, i.HigherLimit()...)
	case sandbox.StatePaused, sandbox.StateStopped:
		return []step{logs, {"delete what the provider keeps of it", "terminate " + ref + " --delete"}}
	case sandbox.StateUnknown:
	}
	return []step{{"check the provider", "doctor --provider " + ShellWord(i.Provider)}, logs}
}

// nextOfRunning advises by behaviour: a missing owner is no reason to watch or end a sandbox.
func (i Inspection) nextOfRunning(ref string, logs, end step) []step {
	watch := step{"see how it develops", "top " + ref + " --samples 10"}
	misbehaves := slices.ContainsFunc(i.Verdict.Findings, func(f triage.Finding) bool { return f.Cause != sandbox.CauseOrphan })
	switch {
	case i.Verdict.Cause == sandbox.CauseGhost:
		return []step{compareRecords()}
	case i.Verdict.Stuck == sandbox.True:
		return []step{end, logs}
	case misbehaves && i.Verdict.Findings[0].Confidence != sandbox.Hint:
		return []step{watch, logs, end}
	case i.Verdict.Stuck == sandbox.Unknown:
		return []step{watch, logs, {"end it, if you know that it does no work", end.Command}}
	case misbehaves:
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
	case i.Exit == nil || i.Limits.MemoryBytes == nil:
		return nil
	}
	switch cause {
	case sandbox.CauseOOM, sandbox.CauseOOMChild, sandbox.CauseMemoryWatchdog:
		return []step{{"start it with more memory", fmt.Sprintf("create --memory %dM -- COMMAND", 2**i.Limits.MemoryBytes/sandbox.MiB)}}
	default:
		return nil
	}
}

// ShellLine is a command as a shell takes it.
func ShellLine(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = ShellWord(word)
	}
	return strings.Join(words, " ")
}

// ShellWord quotes what a shell would not take as it is: ids are the
// provider's, and the line is meant to be pasted.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+-,=", r)
	}
	if word != "" && word[0] != '=' && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
