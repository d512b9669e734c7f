package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// RunItem is one recorded run.
type RunItem struct {
	RunID     string       `json:"run_id" table:"RUN,whole"` // The run.
	StartedAt *time.Time   `json:"started_at" table:""`      // When it began.
	EndedAt   *time.Time   `json:"ended_at" table:",wide"`   // When it ended; null where it was cut off.
	Host      string       `json:"host" table:",wide"`       // Where it ran.
	Selected  int          `json:"selected" table:""`        // How many it had selected.
	Counts    fleet.Counts `json:"counts" table:""`          // What became of them.
	ExitCode  *int         `json:"exit_code" table:"EXIT"`   // Its exit code; null where it was cut off.
	Resumable bool         `json:"resumable" table:""`       // True: `sbx cleanup --resume` can go on with it.
}

// RunColumns are the columns of a RunItem.
func RunColumns() []output.Column[runs.History] {
	return output.Columns(runItem, output.Column[runs.History]{Name: "counts", Text: func(h runs.History) string { return ops.CountsText(h.Counts()) }})
}

func runItem(h runs.History) RunItem {
	c := h.Counts()
	item := RunItem{h.RunID, output.Time(h.StartedAt), output.Time(h.EndedAt), h.Begin.Host, c.Selected, c, nil, h.Resumable()}
	if h.Conclusion != nil {
		item.ExitCode = &h.Conclusion.ExitCode
	}
	return item
}

// RunOutcome is one item of a run.
type RunOutcome struct {
	item   runs.Item
	result runs.Result
	before *runs.Intent
}

// RunOutcomeItem is one sandbox of a recorded run.
type RunOutcomeItem struct {
	Ref             string          `json:"ref" table:""`                  // PROFILE/ID.
	Outcome         sandbox.Outcome `json:"outcome" table:""`              // What became of it; null where the run was cut off before.
	Reason          string          `json:"reason" table:""`               // Why; empty where the outcome says everything.
	DurationSeconds float64         `json:"duration_seconds" table:"TOOK"` // How long it took.
	SelectedBecause string          `json:"selected_because" table:"WHY"`  // Why it was selected.
	Cause           *sandbox.Cause  `json:"cause" table:",wide"`           // What was wrong with it by the judgement before; null where no cause was known.
	Evidence        []EvidenceItem  `json:"evidence"`                      // What the outcome was seen by.
	Before          any             `json:"before"`                        // What was known of it before; null where nothing was written down.
}

// RunShownKeys are the keys of cleanup show beside its items.
type RunShownKeys struct {
	RunID     string          `json:"run_id"`     // The run.
	StartedAt *time.Time      `json:"started_at"` // When it began.
	EndedAt   *time.Time      `json:"ended_at"`   // When it ended; null where it was cut off.
	Actor     *runs.Actor     `json:"actor"`      // Who ran it, where, in which process and with which version.
	Rule      any             `json:"rule"`       // The rule by which it selected, as it was recorded.
	Guards    *[]GuardItem    `json:"guards"`     // The limits of the run.
	Profiles  *[]runs.Profile `json:"profiles"`   // The profiles that it looked at.
	Kept      *map[string]int `json:"kept"`       // How many were kept, by reason.
	Counts    *fleet.Counts   `json:"counts"`     // What became of all.
	Verb      string          `json:"verb"`       // The command.
	Resumable bool            `json:"resumable"`  // True: `sbx cleanup --resume` can go on with it.
}

// RunOutcomeColumns are the columns of a RunOutcomeItem.
func RunOutcomeColumns() []output.Column[RunOutcome] { return output.Columns(RunOutcome.outcomeItem) }

func (r RunOutcome) outcomeItem() RunOutcomeItem {
	return RunOutcomeItem{
		r.item.Ref.String(), r.result.Outcome, r.result.Reason, output.Seconds(time.Duration(r.result.Seconds * float64(time.Second))), r.item.Reason, orNil(r.item.Cause),
		EvidenceList(r.result.Evidence), r.before,
	}
}

// ShowRun shows one recorded run. Program is what sbx is called.
func ShowRun(p *output.Printer, schema string, h runs.History, program string) error {
	list, err := output.NewList(p, output.ListSpec[RunOutcome]{
		Schema: schema, Columns: RunOutcomeColumns(), Human: func(s *output.Sheet, items []RunOutcome) { runPage(s, h, items, program) },
		Empty: "this run selected nothing: " + runWho(h) + ", " + h.StartedAt.UTC().Format(time.RFC3339),
	})
	if err != nil {
		return err
	}
	b := h.Begin
	rule, err := cleanup.RuleOf(h)
	if err != nil {
		list.Fail(err)
	}
	list.Set(RunShownKeys{
		RunID: h.RunID, StartedAt: output.Time(h.StartedAt), EndedAt: output.Time(h.EndedAt), Actor: &b.Actor, Rule: rule, Guards: new(guardItems(safety.RecordedGuards(b.Guards))),
		Profiles: &b.Profiles, Kept: &b.Kept, Counts: new(h.Counts()), Verb: b.Verb, Resumable: b.Verb == runs.VerbCleanup && h.Resumable(),
	})
	for _, i := range h.Begin.Plan.Items {
		row := RunOutcome{item: i, result: h.Results[i.Ref]}
		row.result.Outcome = h.Outcome(i.Ref)
		if before, ok := h.Intents[i.Ref]; ok {
			row.before = &before
		}
		if err := list.Add(row); err != nil {
			return err
		}
	}
	if h.Broken != "" {
		list.Fail(runs.BrokenError(h.RunID, h.Broken))
	}
	if err := h.Unreadable.Error(h.RunID); err != nil {
		list.Fail(err)
	}
	if h.Sums != nil {
		list.Incomplete()
		list.WhenEmpty("")
		p.Note("the outcome of each sandbox is in the journal of " + h.Begin.Host + ", where it ran; in total: " + ops.CountsText(h.Counts()))
	}
	list.Succeeded()
	return list.Close()
}

// runPage shows people what a run was asked to do, by whom, and what became of each sandbox.
func runPage(s *output.Sheet, h runs.History, items []RunOutcome, program string) {
	s.Section(h.RunID)
	s.Field("rule", joinKnown(" ", h.Begin.Verb, recordedRule(h)))
	s.Field("who", runWho(h))
	s.Field("started", h.StartedAt.UTC())
	s.Field("duration", runDuration(h))
	s.Field("result", runResult(h))
	s.Field("guards", guardText(safety.RecordedGuards(h.Begin.Guards)))
	addKnown(s, "causes", plannedCauses(h.Begin.Plan.Items))
	if text := sandbox.FormatCounts(h.Begin.Kept); text != "" {
		s.Field("stayed", text)
	}
	if h.Begin.Verb == runs.VerbCleanup && h.Resumable() {
		s.Field("next", program+" cleanup --resume "+h.RunID)
	}
	s.Section(fmt.Sprintf("Sandboxes: %d", len(items)))
	rows := make([][]any, len(items))
	for i, r := range items {
		took := time.Duration(r.result.Seconds * float64(time.Second))
		rows[i] = []any{r.item.Name, r.item.Ref, r.result.Outcome, took, joinKnown("; ", r.result.Reason, r.item.Reason)}
	}
	s.Compact([]string{"name", "ref", "outcome", "took", "why"}, rows)
}

// recordedRule is the rule of a run as flags; "" where it had none, or none that can be read.
func recordedRule(h runs.History) string {
	rule, err := cleanup.RuleOf(h)
	if err != nil {
		return ""
	}
	return RuleText(rule)
}

// plannedCauses counts what was selected by profile and cause; "" where no cause is known.
func plannedCauses(items []runs.Item) string {
	var c look.Census
	for _, i := range items {
		c.Add(i.Ref.Provider, triage.Verdict{Stuck: sandbox.True, Cause: i.Cause})
	}
	known := func(i runs.Item) bool { return i.Cause.Label() != "" }
	if !slices.ContainsFunc(items, known) {
		return ""
	}
	return causeShares(c.Causes)
}

func runWho(h runs.History) string {
	a := h.Begin.Actor
	return ops.WithDetail(joinKnown("@", a.Who, a.Host), joinKnown(" ", "sbx", a.Version))
}

func runDuration(h runs.History) any {
	if h.EndedAt.IsZero() || h.StartedAt.IsZero() {
		return "interrupted"
	}
	return h.EndedAt.Sub(h.StartedAt)
}

func runResult(h runs.History) string {
	text := ops.CountsText(h.Counts())
	if h.Conclusion == nil {
		return text + "; it was interrupted"
	}
	text += fmt.Sprintf("; exit code %d", h.Conclusion.ExitCode)
	if h.Conclusion.Refused {
		text += ", refused"
	}
	return joinKnown(": ", text, h.Conclusion.Error)
}

// guardText sums the limits of a run in one line: "max_delete 6 of 20 ok".
func guardText(guards []safety.Guard) string {
	parts := make([]string, len(guards))
	for i, g := range guards {
		value, limit := g.Figures()
		verdict := "REFUSED"
		if g.OK {
			verdict = guardVerdict(g)
		}
		parts[i] = fmt.Sprintf("%s %s of %s %s", g.Name, value, limit, verdict)
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// RuleText is a rule as the flags that make it.
func RuleText(r cleanup.Rule) string {
	s := r.Selector
	states := make([]string, len(s.States))
	for i, state := range s.States {
		states[i] = string(state)
	}
	var flags []string
	for _, f := range [][2]string{
		{"--state", strings.Join(states, ",")},
		{"--older-than", durationFlag(s.OlderThan)},
		{"--younger-than", durationFlag(s.YoungerThan)},
		{"--before", momentFlag(s.Before)},
		{"--after", momentFlag(s.After)},
		{"--name", s.Name},
		{"--task", s.Task},
		{"--agent-type", s.AgentType},
		{"--owner", s.Owner},
		{"--template", s.Template},
		{"--exit-code", exitCodeFlag(s.ExitCode)},
		{"--where", s.Where.String()},
		{"--failed-older-than", durationFlag(r.FailedOlderThan)},
		{"--idle-for", durationFlag(r.IdleFor)},
	} {
		if f[1] != "" {
			flags = append(flags, f[0]+" "+ShellWord(f[1]))
		}
	}
	for _, l := range s.Labels {
		for _, value := range l.Values {
			flags = append(flags, "--label "+ShellWord(l.Key+"="+value))
		}
		if len(l.Values) == 0 {
			flags = append(flags, "--label "+ShellWord(l.Key))
		}
	}
	return strings.Join(append(flags, setFlags(r)...), " ")
}

// setFlags are the flags of a rule that take no value.
func setFlags(r cleanup.Rule) []string {
	var flags []string
	for flag, set := range map[string]bool{
		"--stuck": r.Selector.Stuck, "--ignore-activity": r.IgnoreActivity, "--include-paused": r.IncludePaused,
		"--include-failed": r.IncludeFailed, "--unowned": r.Unowned, "--unhealthy": r.Unhealthy, "--delete": r.Delete,
	} {
		if set {
			flags = append(flags, flag)
		}
	}
	slices.Sort(flags)
	return flags
}

func exitCodeFlag(code *int) string {
	if code == nil {
		return ""
	}
	return strconv.Itoa(*code)
}

func durationFlag(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return sandbox.FormatDuration(d)
}

func momentFlag(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
