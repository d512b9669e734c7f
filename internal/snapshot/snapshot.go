// Package snapshot holds a recorded look at all sandboxes: everything that a diagnosis judges by,
// and what it concluded. A snapshot can be judged again, by other thresholds or rules.
//
// It holds no text of a log, no label, no command line and no environment. The document is JSON,
// read strictly; what a key omits is not known. The package is data: it judges nothing.
package snapshot

import (
	"time"

	"sbx/internal/sandbox"
)

// Schema is the version of the document.
const Schema = "sbx.snapshot/v1"

// Snapshot is one recorded look.
type Snapshot struct {
	Schema string `json:"schema"`
	// About says what was looked at, for people.
	About string    `json:"about,omitempty"`
	At    time.Time `json:"at"` // when the conclusions were drawn
	// Settings are the thresholds in force for each kind of sandbox in it.
	Settings []Setting `json:"settings"`
	Profiles []Profile `json:"providers"`
	Cleanup  *Cleanup  `json:"cleanup,omitempty"`
	Log      *Log      `json:"cleanup_log,omitempty"`
	// Concluded is what the diagnosis concluded then.
	Concluded Concluded `json:"concluded"`
}

// Setting is the thresholds of an agent type at a provider, by their keys in the configuration,
// as a file writes them.
type Setting struct {
	Provider   string            `json:"provider"`
	AgentType  string            `json:"agent_type,omitempty"`
	AgeOnly    bool              `json:"age_only,omitempty"`
	Thresholds map[string]string `json:"thresholds"`
}

// Profile is what was read of one provider.
type Profile struct {
	Name    string   `json:"provider"`
	Type    string   `json:"provider_type,omitempty"`
	Stats   *Stats   `json:"stats,omitempty"` // absent = the provider did not answer
	Counted bool     `json:"counted,omitempty"`
	Failed  *Failure `json:"failed,omitempty"` // why something is missing
	// ListFailed is why the listing is not complete; absent = it is, unless nothing was listed in time.
	ListFailed *Failure `json:"list_failed,omitempty"`
	Judged     bool     `json:"judged"` // the sandboxes were judged
	// MayRun are counted as active and listed nowhere, since their requested end is not proved.
	MayRun    []sandbox.Ref `json:"may_run,omitempty"`
	Records   Records       `json:"records"`
	Quotas    []Quota       `json:"quotas,omitempty"`
	QuotaFail *Failure      `json:"quota_failed,omitempty"`
	Sandboxes []Sandbox     `json:"sandboxes"`
}

// Failure is an error as it was.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Stats are the counters of a provider, or the counts of its listing.
type Stats struct {
	Active         *int64 `json:"active,omitempty"`
	Provisioning   *int64 `json:"provisioning,omitempty"`
	Terminating    *int64 `json:"terminating,omitempty"`
	TotalCreated   *int64 `json:"total_created,omitempty"`
	TotalDestroyed *int64 `json:"total_destroyed,omitempty"`
	TimedOut       *int64 `json:"timed_out,omitempty"`
}

// Records are the figures of a profile that no provider reports.
type Records struct {
	Attempts         *int64    `json:"attempts,omitempty"`
	AttemptsTimedOut *int64    `json:"attempts_timed_out,omitempty"`
	AttemptsInactive *int64    `json:"attempts_inactive,omitempty"`
	Stops            *int64    `json:"stops,omitempty"`
	StopsFailed      *int64    `json:"stops_failed,omitempty"`
	History          []Count   `json:"history,omitempty"`
	CleanupRead      bool      `json:"cleanup_read,omitempty"`
	CleanupSeen      time.Time `json:"cleanup_seen,omitzero"`
	CleanupFailures  *int64    `json:"cleanup_failures,omitempty"`
	CleanupRefusals  int64     `json:"cleanup_refusals,omitempty"`
	CreateFailures   *int64    `json:"create_failures,omitempty"`
	MaxSandboxes     *int64    `json:"max_sandboxes,omitempty"`

	ActiveOver   float64 `json:"active_over_seconds,omitempty"` // triage.OverFor
	NormalOver   float64 `json:"active_normal_over_seconds,omitempty"`
	EscalateOver float64 `json:"escalate_active_over_seconds,omitempty"`
}

// Count is how many sandboxes were active at a time.
type Count struct {
	At     time.Time `json:"at"`
	Active int64     `json:"active"`
}

// Quota is one limit of an account.
type Quota struct {
	Name  string   `json:"name,omitempty"`
	Scope string   `json:"scope,omitempty"`
	Unit  string   `json:"unit,omitempty"`
	Used  *float64 `json:"used,omitempty"`
	Limit *float64 `json:"limit,omitempty"`
}

// Sandbox is a row of a listing, whether a cleanup may end it, and what was observed of it.
type Sandbox struct {
	ID             string                `json:"id"`
	Name           string                `json:"name,omitempty"`
	State          sandbox.State         `json:"state"`
	RawState       string                `json:"raw_state,omitempty"`
	CreatedAt      time.Time             `json:"created_at,omitzero"`
	StartedAt      time.Time             `json:"started_at,omitzero"`
	FirstSeenAt    time.Time             `json:"first_seen_at,omitzero"`
	LastActivityAt time.Time             `json:"last_activity_at,omitzero"`
	ActivityBasis  sandbox.ActivityBasis `json:"activity_basis,omitempty"`
	ExpiresAt      time.Time             `json:"expires_at,omitzero"`
	EndingAt       time.Time             `json:"ending_at,omitzero"`
	EndsBy         time.Time             `json:"ends_by,omitzero"`
	EndingSeenAt   time.Time             `json:"ending_seen_at,omitzero"`
	EndedAt        time.Time             `json:"ended_at,omitzero"`
	Activity       sandbox.Verdict       `json:"activity,omitempty"`
	ClockSkew      time.Duration         `json:"clock_skew_ns,omitempty"`
	KeptUntil      time.Time             `json:"kept_until,omitzero"`
	Node           string                `json:"node,omitempty"`
	EndNote        string                `json:"end_note,omitempty"`
	Template       string                `json:"template,omitempty"`
	AgentType      string                `json:"agent_type,omitempty"`
	TaskID         string                `json:"task_id,omitempty"`
	MemoryBytes    *int64                `json:"memory_bytes,omitempty"`
	CPU            *float64              `json:"cpu,omitempty"`
	PIDs           *int64                `json:"pids,omitempty"`
	Enforcement    sandbox.Enforcement   `json:"enforcement,omitempty"`
	Exit           *Exit                 `json:"exit,omitempty"`
	Troubles       []Trouble             `json:"troubles,omitempty"` // without their evidence, which may quote output

	Protected string    `json:"protected,omitempty"` // why a cleanup would not end it
	NotOwned  bool      `json:"not_owned,omitempty"` // its profile does not own it
	JudgedAt  time.Time `json:"judged_at,omitzero"`
	Look      *Look     `json:"look,omitempty"` // absent = nobody looked
}

// Trouble is what a provider reports to be wrong with a sandbox.
type Trouble struct {
	ID         string             `json:"id"`
	Say        string             `json:"say,omitempty"`
	Cause      sandbox.Cause      `json:"cause,omitempty"`
	Confidence sandbox.Confidence `json:"confidence,omitempty"`
}

// Exit is how the program of a sandbox ended.
type Exit struct {
	Code       *int               `json:"code,omitempty"`
	Raw        string             `json:"raw,omitempty"`
	Signal     string             `json:"signal,omitempty"`
	Class      sandbox.Class      `json:"class,omitempty"`
	Cause      sandbox.Cause      `json:"cause,omitempty"`
	Confidence sandbox.Confidence `json:"confidence,omitempty"`
}

// Look is what was observed of a sandbox beside its row.
type Look struct {
	AskedAt        time.Time             `json:"asked_at,omitzero"` // when the row was found not to decide
	State          sandbox.State         `json:"state,omitempty"`   // where it is another than that of the row
	LastActivityAt time.Time             `json:"last_activity_at,omitzero"`
	ActivityBasis  sandbox.ActivityBasis `json:"activity_basis,omitempty"`
	Samples        *Series               `json:"samples,omitempty"`
	Earlier        *Series               `json:"earlier_samples,omitempty"`
	Logs           *Logs                 `json:"logs,omitempty"`
	Processes      *int                  `json:"processes,omitempty"`
	Exited         bool                  `json:"exited,omitempty"`
	Finished       sandbox.Verdict       `json:"finished,omitempty"`
	FinishedBy     *sandbox.Evidence     `json:"finished_by,omitempty"`
	TimeLimitsHit  *int                  `json:"time_limits_hit,omitempty"`
	Work           *Work                 `json:"work,omitempty"`
	Answers        sandbox.Verdict       `json:"answers,omitempty"`
	SourceFailed   *Failure              `json:"source_failed,omitempty"`
	LookFailed     *Failure              `json:"look_failed,omitempty"`
	Missing        bool                  `json:"missing,omitempty"`
	TracksTasks    bool                  `json:"tracks_tasks,omitempty"`
	ProfileRead    bool                  `json:"provider_read,omitempty"`
	QuotaUsed      *float64              `json:"quota_used,omitempty"`
}

// Work is what a control plane reports of the work in a sandbox.
type Work struct {
	LastWorkAt      time.Time `json:"last_work_at,omitzero"`
	LastHeartbeatAt time.Time `json:"last_heartbeat_at,omitzero"`
	WaitsSince      time.Time `json:"waits_since,omitzero"`
	SilenceSeconds  float64   `json:"silence_seconds,omitempty"`
}

// Thread is the busiest thread of a sample.
type Thread struct {
	ID            string  `json:"id"`
	WantedSeconds float64 `json:"wanted_seconds"`
	Runnable      bool    `json:"runnable,omitempty"`
	Sleeps        *int64  `json:"sleeps,omitempty"`
}

// Logs are the findings of a log, without its text.
type Logs struct {
	Complete bool      `json:"complete,omitempty"`
	Lines    int       `json:"lines"`
	Last     time.Time `json:"last,omitzero"`
	Errors   int       `json:"errors,omitempty"`
	Hits     []Hit     `json:"hits,omitempty"`
	Calling  bool      `json:"calling,omitempty"`
	Repeats  int       `json:"repeats,omitempty"` // of the most frequent line among the last
}

// Hit is a pattern that was seen in a log.
type Hit struct {
	Pattern string    `json:"pattern"`
	Count   int       `json:"count"`
	Last    time.Time `json:"last,omitzero"`
}

// Cleanup is what is recorded of the runs of cleanup.
type Cleanup struct {
	Profiles   []string `json:"providers"`
	Runs       []Run    `json:"runs"`                 // newest first
	Unreadable int      `json:"unreadable,omitempty"` // journals that could not be read or trusted
}

// Run is one run of cleanup.
type Run struct {
	Layer     string         `json:"layer,omitempty"`
	Shortfall string         `json:"shortfall,omitempty"`
	StartedAt time.Time      `json:"started_at"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	ExitCode  int            `json:"exit_code"`
	Refused   bool           `json:"refused,omitempty"`
	Succeeded []string       `json:"succeeded,omitempty"`
	Unowned   map[string]int `json:"unowned,omitempty"`
}

// Log is what the log of a cleanup job of others said.
type Log struct {
	Lines    int       `json:"lines"`
	Matched  int       `json:"matched"`
	Dated    int       `json:"dated"`
	First    time.Time `json:"first,omitzero"`
	Last     time.Time `json:"last,omitzero"`
	ReadAt   time.Time `json:"read_at"`
	Runs     []LogRun  `json:"runs"`
	NotFound int       `json:"not_found,omitempty"`
}

// LogRun is one run of that job.
type LogRun struct {
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Completed bool      `json:"completed,omitempty"`
	Found     *int      `json:"found,omitempty"`
	Removed   int       `json:"removed,omitempty"`
	Failed    int       `json:"failed,omitempty"`
	FailedAll bool      `json:"failed_as_a_whole,omitempty"`
}

// Concluded is what a diagnosis concludes. What is true and what is unknown is in it, and what is
// false is not.
type Concluded struct {
	Verdict   sandbox.Verdict `json:"verdict"`
	Listed    int             `json:"listed"`
	Stuck     []Marked        `json:"stuck"`
	Suspected []Marked        `json:"suspected"`
	Unjudged  []string        `json:"unjudged"`
	Flags     []Answer        `json:"flags"`
	Causes    []Cause         `json:"causes"` // ranked
	Alerts    []Alert         `json:"alerts"`
	Checks    []Answer        `json:"checks"` // the targets of verify; these also where they are met
	Plan      []string        `json:"plan"`   // what a cleanup of stuck sandboxes selects
	// Runbooks are those that were held against the look; absent = none was.
	Runbooks []Runbook `json:"runbooks,omitempty"`
}

// Marked is a sandbox with its cause.
type Marked struct {
	Ref   string        `json:"ref"`
	Cause sandbox.Cause `json:"cause"`
}

// Answer is a flag or check with its verdict.
type Answer struct {
	ID      string          `json:"id"`
	Verdict sandbox.Verdict `json:"verdict"`
}

// Cause is a cause with its confidence.
type Cause struct {
	ID         string             `json:"id"`
	Confidence sandbox.Confidence `json:"confidence"`
}

// Alert is an alert at a provider whose condition holds, or is not known.
type Alert struct {
	Rule     string          `json:"rule"`
	Provider string          `json:"provider"`
	Verdict  sandbox.Verdict `json:"verdict"`
}

// Runbook is what a runbook says of the look. What does not hold is not in it.
type Runbook struct {
	ID          string   `json:"id"`
	Checks      []Answer `json:"checks"`      // its steps with a condition
	Causes      []string `json:"causes"`      // the branches that the diagnosis selects
	Escalations []Answer `json:"escalations"` // by alert, or by condition
}
