package views

import (
	"cmp"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/ops/recall"
	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Inspection is one sandbox with all that is known and thought of it.
type Inspection struct {
	SandboxRow

	Seen    fleet.Observation
	Used    *UsageRow           // nil where usage is not known
	Logs    *triage.LogFindings // nil where no output was read
	Flags   []triage.Flag
	Causes  []triage.Finding
	Steps   []look.DiagnoseStep
	Task    *ops.TaskState    // that was asked for; nil = the sandbox was
	Program string            // what sbx is called, for the next command
	Command string            // of the sandbox, quoted for a shell; "" = not known
	Ended   *recall.EndRecord // what the journals record of its end; nil = nothing
	Last    *history.Seen     // what an earlier look saw of one that is gone; nil = nothing
	Missing error             // why it cannot be asked: then this is what is on record
}

// InspectionOf is what was found of one sandbox, as it is shown; nil where the investigation is of none.
// Program is what sbx is called.
func InspectionOf(p *output.Printer, d *look.DiagnoseResult, program string) *Inspection {
	r := d.Inspected
	if r == nil {
		return nil
	}
	return &Inspection{
		SandboxRow: SandboxRow{Sandbox: r.Seen.Sandbox, Verdict: r.Verdict, Now: r.At},
		Seen:       r.Seen, Used: (*UsageRow)(r.Used), Logs: r.Signals.Logs, Flags: r.Flags, Causes: r.Causes, Steps: d.Steps, Task: d.Task,
		Program: program, Command: p.Redact(ShellLine(r.Seen.Sandbox.Command)), Ended: r.End, Last: r.Last, Missing: r.Missing,
	}
}

// HealthTone is bad only where an answer is due: what has ended gives none.
func (i Inspection) HealthTone() output.Tone {
	switch {
	case i.Seen.Health.Got.Verdict == sandbox.True:
		return output.Good
	case i.State != sandbox.StateRunning:
		return output.Plain
	case i.Seen.Health.Got.Verdict == sandbox.False:
		return output.Bad
	}
	return output.Warn
}

// InspectionItem is one sandbox in full.
type InspectionItem struct {
	SandboxItem

	Command    *string         `json:"command"`    // The command of its program, quoted for a shell; null where it is not known.
	Limits     LimitsItem      `json:"limits"`     // The limits that hold it.
	Usage      *UsageItem      `json:"usage"`      // What it uses; null where that could not be read.
	Health     *HealthItem     `json:"health"`     // Whether it answers; null where it was not asked.
	Timeline   *[]EventItem    `json:"timeline"`   // What happened to it, oldest first; null where no record says it.
	Exit       *ExitItem       `json:"exit"`       // How its program ended; null while it runs.
	Suspicions []SuspicionItem `json:"suspicions"` // What may be wrong with it, the most likely first.
	Flags      []FlagItem      `json:"flags"`      // The answers to the warnings of the runbook.
	// The possible causes of what is wrong, the most likely first, then the best one that the
	// symptoms exclude.
	Causes   []CauseItem   `json:"causes"`
	EndedBy  *EndedByItem  `json:"ended_by"`  // Which run of sbx ended it; null for none.
	LastSeen *LastSeenItem `json:"last_seen"` // What an earlier look saw of one that failed and is gone; null for nothing.
}

// LastSeenItem is what is kept of a sandbox that failed.
type LastSeenItem struct {
	At     *time.Time     `json:"at"`     // When it ended, or was created where that is not known.
	State  sandbox.State  `json:"state"`  // Its state then.
	Cause  *sandbox.Cause `json:"cause"`  // What was wrong with it; null for nothing.
	Reason string         `json:"reason"` // In one sentence.
}

// LimitsItem is the limits of one sandbox.
type LimitsItem struct {
	MemoryMB    *output.Mebibytes `json:"memory_mb"`   // The limit of memory, in MiB.
	CPU         *float64          `json:"cpu"`         // The limit of processors, in cores.
	PIDs        *int64            `json:"pids"`        // The limit of processes and threads.
	Enforcement string            `json:"enforcement"` // What enforces them; empty where the provider does not say.
	Isolation   string            `json:"isolation"`   // What keeps it apart from others; empty where the provider does not say.
}

// HealthItem is the answer of a probe.
type HealthItem struct {
	Verdict   sandbox.Verdict `json:"verdict"`   // Whether it answers.
	Condition string          `json:"condition"` // What to do: healthy, wait or recreate.
	Evidence  []EvidenceItem  `json:"evidence"`  // What was seen.
}

// EventItem is one event of a sandbox or a task.
type EventItem struct {
	At     *time.Time `json:"at"`     // When it happened.
	Event  string     `json:"event"`  // What happened.
	Detail *string    `json:"detail"` // More about it.
}

// ExitItem is how a program ended.
type ExitItem struct {
	Code       *int           `json:"code"`       // Its exit code; 128+n for a death by signal n.
	RawExit    string         `json:"raw_exit"`   // The exit as the provider spells it.
	Signal     string         `json:"signal"`     // The signal that ended it, such as SIGKILL; empty for none.
	Class      string         `json:"class"`      // The class of the exit, which --retry-on takes.
	Cause      string         `json:"cause"`      // What ended it; empty for nothing in particular.
	Confidence string         `json:"confidence"` // How sure that is; empty without a cause.
	Evidence   []EvidenceItem `json:"evidence"`   // What was seen.
}

// SuspicionItem is one possible cause.
type SuspicionItem struct {
	Cause      string             `json:"cause"`      // The cause.
	Title      string             `json:"title"`      // The cause in words.
	Confidence sandbox.Confidence `json:"confidence"` // How sure it is.
	Evidence   []EvidenceItem     `json:"evidence"`   // What speaks for it.
}

// EndedByItem is how a run of sbx ended a sandbox.
type EndedByItem struct {
	At      *time.Time      `json:"at"`      // When.
	Who     string          `json:"who"`     // The user.
	Host    string          `json:"host"`    // The host.
	Verb    string          `json:"verb"`    // The command.
	RunID   string          `json:"run_id"`  // The run; `sbx cleanup show` shows it.
	Outcome sandbox.Outcome `json:"outcome"` // What became of it.
	Reason  string          `json:"reason"`  // Why it was ended, or why it was not.
}

// InspectColumns are the columns of an InspectionItem.
func InspectColumns() []output.Column[Inspection] { return output.Columns(Inspection.Item) }

// Item is the sandbox as documents have it.
func (i Inspection) Item() InspectionItem {
	l := i.Limits
	item := InspectionItem{
		SandboxItem: i.SandboxRow.Item(), Command: orNil(i.Command),
		Limits:   LimitsItem{output.MiB(l.MemoryBytes), l.CPU, l.PIDs, string(l.Enforcement), l.Isolation},
		Timeline: i.timeline(), Suspicions: []SuspicionItem{}, Flags: flagItems(i.Flags), Causes: causeItems(i.Causes),
	}
	if i.Used != nil {
		item.Usage = new(i.Used.Item())
	}
	if h := i.Seen.Health; h.Err == nil {
		item.Health = &HealthItem{h.Got.Verdict, string(i.conditionOf()), EvidenceList(h.Got.Evidence)}
	}
	if e := i.Exit; e != nil {
		item.Exit = &ExitItem{e.Code, e.Raw, e.Signal, string(e.Class), string(e.Cause), string(e.Confidence), EvidenceList(e.Evidence)}
	}
	for _, f := range i.Verdict.Findings {
		item.Suspicions = append(item.Suspicions, SuspicionItem{string(f.Cause), f.Title, f.Confidence, EvidenceList(f.Evidence)})
	}
	if r := i.Ended; r != nil {
		item.EndedBy = &EndedByItem{output.Time(r.At), r.Who, r.Host, r.Verb, r.Run, r.Outcome, r.Reason}
	}
	if s := i.Last; s != nil {
		item.LastSeen = &LastSeenItem{output.Time(s.At), s.Sandbox.State, orNil(s.Cause), s.Reason}
	}
	return item
}

// conditionOf is what may be done next, "unknown" where the probe does not say.
func (i Inspection) conditionOf() providers.Condition {
	return cmp.Or(i.Seen.Health.Got.Condition, providers.ConditionUnknown)
}

func (i Inspection) timeline() *[]EventItem {
	if i.Seen.Events.Err != nil && len(i.Seen.Events.Got) == 0 {
		return nil
	}
	events := make([]EventItem, len(i.Seen.Events.Got))
	for n, e := range i.Seen.Events.Got {
		events[n] = EventItem{output.Time(e.At), e.Event, &e.Detail}
	}
	return &events
}
