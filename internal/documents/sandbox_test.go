package documents

import "sbx/internal/sandbox"

// sandboxRow is one sandbox as ls, wait and inspect show it.
type sandboxRow struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// The profile.
	Provider string `json:"provider"`
	// The type of the profile, such as e2b.
	ProviderType string `json:"provider_type"`
	// The provider's own id.
	ID string `json:"id"`
	// The name that it was given; empty without one.
	Name string `json:"name"`
	// The state, in the words of sbx.
	State sandbox.State `json:"state"`
	// The state, in the provider's word.
	RawState string `json:"raw_state"`
	// When the provider made it.
	CreatedAt *moment `json:"created_at"`
	// When its program began.
	StartedAt *moment `json:"started_at"`
	// How old it is.
	AgeSeconds *float64 `json:"age_seconds"`
	// What the age is counted from.
	AgeSource sandbox.AgeSource `json:"age_source"`
	// The last sign of life that is on record.
	LastActivityAt *moment `json:"last_activity_at"`
	// The time since then.
	IdleSeconds *float64 `json:"idle_seconds"`
	// Whether it works.
	Activity sandbox.Verdict `json:"activity"`
	// When the provider ends it.
	ExpiresAt *moment `json:"expires_at"`
	// The template, snapshot or image it was made from; empty where none is known.
	Template string `json:"template"`
	// The type of its agent, from its labels.
	AgentType string `json:"agent_type"`
	// The task it works on, from its labels.
	TaskID string `json:"task_id"`
	// Whose it is, from its labels.
	Owner string `json:"owner"`
	// Its labels.
	Labels map[string]string `json:"labels"`
	// The limit of processors, in cores.
	CPU *float64 `json:"cpu"`
	// The limit of memory, in MiB.
	MemoryMB *float64 `json:"memory_mb"`
	// The limit of disk space, in MiB.
	DiskMB *float64 `json:"disk_mb"`
	// The exit code of its program; null while it runs.
	ExitCode *int `json:"exit_code"`
	// Whether it is stuck.
	Stuck sandbox.Verdict `json:"stuck"`
	// Why, in fixed words with commas between them.
	StuckReason string `json:"stuck_reason"`

	verdict
}

// verdict is the judgement of a sandbox, the same in every command.
type verdict struct {
	// Why it is stuck, or what ended it.
	Cause *sandbox.Cause `json:"cause"`
	// How sure that is.
	Confidence *sandbox.Confidence `json:"confidence"`
	// The judgement in one sentence.
	Reason *string `json:"reason"`
	// True: the sandbox itself was asked (output, events, processor). False: only its record was
	// read.
	Looked bool `json:"looked"`
}

// lsDocument is the document of ls.
type lsDocument struct {
	listOf[sandboxRow]

	// How many of the listed could not be judged from their records; null where it was not
	// counted.
	Unjudged *int `json:"unjudged,omitempty"`
	// How many --where leaves unknown, so that they are not listed, by reason; null where they
	// were not counted.
	Undecided *map[string]int `json:"undecided,omitempty"`
	// The ends that were requested, not acknowledged and not proved since, the oldest first: only
	// with --all, where there are any. Null where the records of requests cannot be read.
	Unconfirmed *[]unconfirmedEnd `json:"unconfirmed,omitempty"`
}

// unconfirmedEnd is a sandbox that may still run after a request to end it.
type unconfirmedEnd struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// When the end was requested.
	At moment `json:"at"`
	// The answer, or its absence.
	Detail string `json:"detail"`
}

// usageRow is what one sandbox uses.
type usageRow struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// When it was measured.
	At *moment `json:"at"`
	// Processor time in percent of one core.
	CPUPercent *float64 `json:"cpu_percent"`
	// The working set, in MiB: memory in use without inactive page cache. Null where that is not
	// known.
	MemoryMB *float64 `json:"memory_mb"`
	// The limit of memory, in MiB.
	MemoryLimitMB *float64 `json:"memory_limit_mb"`
	// How fast memory grows, in MiB a minute.
	MemorySlope *float64 `json:"memory_slope_mb_per_min"`
	// Reads and writes since the start of the sandbox.
	Operations *float64 `json:"operations"`
	// How long the sandbox has run, as the provider counts it.
	DurationSeconds *float64 `json:"duration_seconds"`
	// Processes and threads.
	PIDs *int `json:"pids"`
	// How often the kernel has ended a process for memory.
	OOMKills *int `json:"oom_kills"`
	// What the samples look like; `sbx top --help` and docs/PATTERNS.md explain the words.
	Pattern string `json:"pattern"`
	// The likely cause; empty for none.
	LikelyCause string `json:"likely_cause"`
	// Where the figures are from.
	Source string `json:"source"`
	// Whether it is stuck.
	Stuck sandbox.Verdict `json:"stuck"`

	verdict

	// Its name; empty without one.
	Name string `json:"name"`
	// The task it works on, from its labels.
	TaskID string `json:"task_id"`
}

// inspection is one sandbox in full.
type inspection struct {
	sandboxRow

	// The command of its program, quoted for a shell; null where it is not known.
	Command *string `json:"command"`
	// The limits that hold it.
	Limits limits `json:"limits"`
	// What it uses; null where that could not be read.
	Usage *usageRow `json:"usage"`
	// Whether it answers; null where it was not asked.
	Health *health `json:"health"`
	// What happened to it, oldest first; null where no record says it.
	Timeline *[]incident `json:"timeline"`
	// How its program ended; null while it runs.
	Exit *exit `json:"exit"`
	// What may be wrong with it, the most likely first.
	Suspicions []suspicion `json:"suspicions"`
	// The answers to the warnings of the runbook.
	Flags []warning `json:"flags"`
	// The possible causes of what is wrong, the most likely first, then the best one that the
	// symptoms exclude.
	Causes []possibleCause `json:"causes"`
	// Which run of sbx ended it; null for none.
	EndedBy *ending `json:"ended_by"`
	// What an earlier look saw of one that failed and is gone; null for nothing.
	LastSeen *lastSeen `json:"last_seen"`
}

// lastSeen is what is kept of a sandbox that failed.
type lastSeen struct {
	// When it ended, or was created where that is not known.
	At *moment `json:"at"`
	// Its state then.
	State sandbox.State `json:"state"`
	// What was wrong with it; null for nothing.
	Cause *sandbox.Cause `json:"cause"`
	// In one sentence.
	Reason string `json:"reason"`
}

// limits are those of one sandbox.
type limits struct {
	// The limit of memory, in MiB.
	MemoryMB *float64 `json:"memory_mb"`
	// The limit of processors, in cores.
	CPU *float64 `json:"cpu"`
	// The limit of processes and threads.
	PIDs *int `json:"pids"`
	// What enforces them; empty where the provider does not say.
	Enforcement string `json:"enforcement"`
	// What keeps it apart from others; empty where the provider does not say.
	Isolation string `json:"isolation"`
}

// health is the answer of a probe.
type health struct {
	// Whether it answers.
	Verdict sandbox.Verdict `json:"verdict"`
	// What to do: healthy, wait or recreate.
	Condition string `json:"condition"`
	// What was seen.
	Evidence []evidence `json:"evidence"`
}

// incident is one event of a sandbox or a task.
type incident struct {
	// When it happened.
	At *moment `json:"at"`
	// What happened.
	Event string `json:"event"`
	// More about it.
	Detail *string `json:"detail"`
}

// exit is how a program ended.
type exit struct {
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
	Evidence []evidence `json:"evidence"`
}

// suspicion is one possible cause.
type suspicion struct {
	// The cause.
	Cause string `json:"cause"`
	// The cause in words.
	Title string `json:"title"`
	// How sure it is.
	Confidence sandbox.Confidence `json:"confidence"`
	// What speaks for it.
	Evidence []evidence `json:"evidence"`
}

// ending is how a run of sbx ended a sandbox.
type ending struct {
	// When.
	At *moment `json:"at"`
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

// logLine is one line of output.
type logLine struct {
	// When it was written; null where the provider does not say.
	At *moment `json:"at"`
	// stdout or stderr; empty where the provider does not say.
	Stream string `json:"stream"`
	// The text.
	Line string `json:"line"`
	// The known pattern that the line shows; empty for none.
	Pattern string `json:"pattern"`
}

// logsDocument is the document of logs.
type logsDocument struct {
	listOf[logLine]

	// How many lines are no longer kept; null where that is not known.
	MissingLines *int `json:"missing_lines,omitempty"`
	// How many bytes are no longer kept; null where that is not known.
	MissingBytes *int `json:"missing_bytes,omitempty"`
}

// created is a new sandbox.
type created struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
}

// statsRow counts the sandboxes of one profile.
type statsRow struct {
	// The profile.
	Provider string `json:"provider"`
	// The type of the profile.
	ProviderType string `json:"provider_type"`

	figures

	// The warnings of the runbook that apply.
	Flags []warning `json:"flags"`
}

// figures are those of one profile or of all.
type figures struct {
	// Running sandboxes.
	Active *int `json:"active"`
	// Sandboxes that start.
	Provisioning *int `json:"provisioning"`
	// Sandboxes that are being ended.
	Terminating *int `json:"terminating"`
	// Made since the provider counts.
	TotalCreated *int `json:"total_created"`
	// Ended since the provider counts.
	TotalDestroyed *int `json:"total_destroyed"`
	// The age of the youngest.
	AgeMinSeconds *float64 `json:"age_min_seconds"`
	// The age that half of them have not reached.
	AgeP50Seconds *float64 `json:"age_p50_seconds"`
	// The age that 95 of 100 have not reached.
	AgeP95Seconds *float64 `json:"age_p95_seconds"`
	// The age of the oldest.
	AgeMaxSeconds *float64 `json:"age_max_seconds"`
	// How many are stuck.
	Stuck *int `json:"stuck"`
	// How many are stuck for which cause, the most frequent first; null where the listing is
	// missing.
	StuckCauses *map[sandbox.Cause]int `json:"stuck_causes"`
	// How many could not be judged.
	Unjudged *int `json:"unjudged"`
	// The share of ended ones that a time limit ended, from 0 to 1.
	TimeoutRate *float64 `json:"timeout_rate"`
	// The limits that the figures are compared with.
	Thresholds thresholds `json:"thresholds"`
}

// thresholds are the limits of the runbook.
type thresholds struct {
	// More running sandboxes than this are a warning.
	ActiveMax int `json:"active_max"`
	// Older silent sandboxes are stuck.
	StuckAgeSeconds float64 `json:"stuck_age_seconds"`
	// Older silent sandboxes are watched.
	WatchAgeSeconds float64 `json:"watch_age_seconds"`
	// A higher timeout rate is a warning.
	TimeoutRateHigh float64 `json:"timeout_rate_high"`
	// A lower timeout rate is good.
	TimeoutRateGood float64 `json:"timeout_rate_good"`
}

// warning is one warning of the runbook.
type warning struct {
	// Its number in the runbook.
	ID string `json:"id"`
	// critical, warning or info.
	Severity string `json:"severity"`
	// Whether it applies.
	Verdict sandbox.Verdict `json:"verdict"`
	// What it says.
	Say string `json:"say"`
	// What was seen.
	Evidence []evidence `json:"evidence"`
}

// statsDocument is the document of stats.
type statsDocument struct {
	listOf[statsRow]

	// The figures of all profiles together.
	Total *figures `json:"total,omitempty"`
	// The alerts that are pending or firing; this verb evaluates none.
	Alerts *[]openAlert `json:"alerts,omitempty"`
}
