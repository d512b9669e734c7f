package views

import (
	"cmp"
	"time"

	"sbx/internal/output"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// InspectionItem is one sandbox in full.
type InspectionItem struct {
	SandboxItem

	// The command of its program, quoted for a shell; null where it is not known.
	Command *string `json:"command"`
	// The limits that hold it.
	Limits LimitsItem `json:"limits"`
	// What it uses; null where that could not be read.
	Usage *UsageItem `json:"usage"`
	// Whether it answers; null where it was not asked.
	Health *HealthItem `json:"health"`
	// What happened to it, oldest first; null where no record says it.
	Timeline *[]EventItem `json:"timeline"`
	// How its program ended; null while it runs.
	Exit *ExitItem `json:"exit"`
	// What may be wrong with it, the most likely first.
	Suspicions []SuspicionItem `json:"suspicions"`
	// The answers to the warnings of the runbook.
	Flags []FlagItem `json:"flags"`
	// The possible causes of what is wrong, the most likely first, then the best one that the
	// symptoms exclude.
	Causes []CauseItem `json:"causes"`
	// Which run of sbx ended it; null for none.
	EndedBy *EndedByItem `json:"ended_by"`
	// What an earlier look saw of one that failed and is gone; null for nothing.
	LastSeen *LastSeenItem `json:"last_seen"`
}

// LastSeenItem is what is kept of a sandbox that failed.
type LastSeenItem struct {
	// When it ended, or was created where that is not known.
	At *time.Time `json:"at"`
	// Its state then.
	State sandbox.State `json:"state"`
	// What was wrong with it; null for nothing.
	Cause *sandbox.Cause `json:"cause"`
	// In one sentence.
	Reason string `json:"reason"`
}

// LimitsItem are those of one sandbox.
type LimitsItem struct {
	// The limit of memory, in MiB.
	MemoryMB *output.Mebibytes `json:"memory_mb"`
	// The limit of processors, in cores.
	CPU *float64 `json:"cpu"`
	// The limit of processes and threads.
	PIDs *int64 `json:"pids"`
	// What enforces them; empty where the provider does not say.
	Enforcement string `json:"enforcement"`
	// What keeps it apart from others; empty where the provider does not say.
	Isolation string `json:"isolation"`
}

// HealthItem is the answer of a probe.
type HealthItem struct {
	// Whether it answers.
	Verdict sandbox.Verdict `json:"verdict"`
	// What to do: healthy, wait or recreate.
	Condition string `json:"condition"`
	// What was seen.
	Evidence []EvidenceItem `json:"evidence"`
}

// EventItem is one event of a sandbox or a task.
type EventItem struct {
	// When it happened.
	At *time.Time `json:"at"`
	// What happened.
	Event string `json:"event"`
	// More about it.
	Detail *string `json:"detail"`
}

// ExitItem is how a program ended.
type ExitItem struct {
	// Its exit code; 128+n for a death by signal n.
	Code *int `json:"code"`
	// The exit as the provider spells it.
	RawExit string `json:"raw_exit"`
	// The signal that ended it, such as SIGKILL; empty for none.
	Signal string `json:"signal"`
	// The class of the exit, which --retry-on takes.
	Class string `json:"class"`
	// What ended it; empty for nothing in particular.
	Cause string `json:"cause"`
	// How sure that is; empty without a cause.
	Confidence string `json:"confidence"`
	// What was seen.
	Evidence []EvidenceItem `json:"evidence"`
}

// SuspicionItem is one possible cause.
type SuspicionItem struct {
	// The cause.
	Cause string `json:"cause"`
	// The cause in words.
	Title string `json:"title"`
	// How sure it is.
	Confidence sandbox.Confidence `json:"confidence"`
	// What speaks for it.
	Evidence []EvidenceItem `json:"evidence"`
}

// EndedByItem is how a run of sbx ended a sandbox.
type EndedByItem struct {
	// When.
	At *time.Time `json:"at"`
	// The user.
	Who string `json:"who"`
	// The host.
	Host string `json:"host"`
	// The command.
	Verb string `json:"verb"`
	// The run; `sbx cleanup show` shows it.
	RunID string `json:"run_id"`
	// What became of it.
	Outcome sandbox.Outcome `json:"outcome"`
	// Why it was ended, or why it was not.
	Reason string `json:"reason"`
}

// EvidenceItem is one observation.
type EvidenceItem struct {
	// What was looked at.
	What string `json:"what"`
	// What was seen.
	Value string `json:"value"`
	// Where it was seen.
	Source string `json:"source"`
	// When it was seen.
	At *time.Time `json:"at"`
}

// InspectColumns are those of an InspectionItem.
func InspectColumns() []output.Column[Inspection] { return output.Columns(Inspection.Item) }

// Item is the sandbox as documents have it.
func (i Inspection) Item() InspectionItem {
	l := i.Limits
	item := InspectionItem{
		SandboxItem: i.SandboxRow.Item(), Command: orNil(i.Command),
		Limits: LimitsItem{output.MiB(l.MemoryBytes), l.CPU, l.PIDs, string(l.Enforcement), l.Isolation},
		Health: i.healthItem(), Timeline: i.timeline(), Exit: i.exitItem(), Suspicions: []SuspicionItem{}, Flags: flagItems(i.Flags), Causes: causeItems(i.Causes),
	}
	if i.Used != nil {
		item.Usage = new(i.Used.Item())
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

func (i Inspection) healthItem() *HealthItem {
	if i.Seen.Health.Err != nil {
		return nil
	}
	return &HealthItem{i.Seen.Health.Got.Verdict, string(i.conditionOf()), EvidenceList(i.Seen.Health.Got.Evidence)}
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

func (i Inspection) exitItem() *ExitItem {
	e := i.Exit
	if e == nil {
		return nil
	}
	return &ExitItem{e.Code, e.Raw, e.Signal, string(e.Class), string(e.Cause), string(e.Confidence), EvidenceList(e.Evidence)}
}
