// Package record is the storage of the local provider: one folder per sandbox, with a record
// that is replaced atomically (write, fsync, rename), a lock that its supervisor holds while it
// lives, and the first stop request.
//
// The record has facts, not judgements: wait status, counters, who stopped it. Their meaning
// is the readers' task. No process is started or signalled here.
package record

import (
	"encoding/json"
	"time"

	"sbx/internal/providers/local/identity"
	"sbx/internal/sandbox"
)

// Schema is the version of the record's format. A record with a higher one was written by a
// newer sbx and is read-only here.
const Schema = 1

// Record is one sandbox on disk, without the values of its environment.
type Record struct {
	Schema        int               `json:"schema"`
	Version       string            `json:"sbx_version"`
	ID            string            `json:"id"`
	Name          string            `json:"name,omitempty"`
	State         sandbox.State     `json:"state"`
	Command       []string          `json:"command"`
	EnvNames      []string          `json:"env_names,omitempty"`
	Workdir       string            `json:"workdir"`
	Labels        map[string]string `json:"labels,omitempty"`
	TaskID        string            `json:"task_id,omitempty"`
	AgentType     string            `json:"agent_type,omitempty"`
	KeepAfterExit bool              `json:"linger,omitempty"` // the sandbox stays when its program has ended

	CreatedAt time.Time `json:"created_at,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	EndMoves  bool      `json:"end_moves,omitempty"` // its supervisor obeys Store.MoveEnd

	Limits     Limits           `json:"limits"`
	Supervisor identity.Process `json:"supervisor,omitzero"`
	Stub       identity.Process `json:"stub,omitzero"`
	Program    identity.Process `json:"program,omitzero"`
	Cgroup     json.RawMessage  `json:"cgroup,omitempty"` // the state of a cgroup.Group
	Exit       *Exit            `json:"exit,omitempty"`   // of the program, and of the sandbox where End is nil
	End        *End             `json:"end,omitempty"`
	Events     []Event          `json:"events,omitempty"`
}

// Limits are the limits of the sandbox; 0 = none.
type Limits struct {
	MemoryBytes int64               `json:"memory_bytes,omitempty"`
	CPU         float64             `json:"cpu,omitempty"` // cores
	PIDs        int64               `json:"pids,omitempty"`
	TTLSeconds  float64             `json:"ttl_seconds,omitempty"`
	OutputBytes int64               `json:"output_bytes,omitempty"`
	Enforcement sandbox.Enforcement `json:"enforcement"`
	Reason      string              `json:"enforcement_reason,omitempty"` // why it is not a stronger one
	Isolation   string              `json:"isolation"`
}

// Exit is what was observed of the end.
type Exit struct {
	Code           *int            `json:"code,omitempty"`   // of a normal exit
	Signal         int             `json:"signal,omitempty"` // of a death by signal
	StartError     string          `json:"start_error,omitempty"`
	Stop           *Stop           `json:"stop,omitempty"`
	TimedOut       bool            `json:"timed_out,omitempty"`
	SupervisorLost bool            `json:"supervisor_lost,omitempty"`
	WatchdogBytes  int64           `json:"watchdog_bytes,omitempty"` // resident bytes when the watchdog fired
	OOMKills       *int64          `json:"oom_kills,omitempty"`      // nil = no counter
	TasksRefused   *int64          `json:"tasks_refused,omitempty"`  // by the limit of processes; nil = no counter
	KernelLog      string          `json:"kernel_log,omitempty"`     // the kernel's log line of its OOM kill
	NotLogged      bool            `json:"not_logged,omitempty"`     // the kernel's log is complete since the start and has no such line
	LastKillAt     time.Time       `json:"last_kill_at,omitzero"`    // the last OOM kill in the sandbox, by that log or its counter
	OwnLimit       sandbox.Verdict `json:"own_limit,omitempty"`      // whether that was for the sandbox's own limit; "" = not known
	PeakBytes      *int64          `json:"peak_bytes,omitempty"`
	LastBytes      *int64          `json:"last_bytes,omitempty"` // last sample while it ran
	LastSampleAt   time.Time       `json:"last_sample_at,omitzero"`
	CPUSeconds     *float64        `json:"cpu_seconds,omitempty"`
	CounterSource  string          `json:"counter_source,omitempty"`
	Emptied        string          `json:"emptied,omitempty"`  // the proof that no process is left
	Unproven       bool            `json:"unproven,omitempty"` // without that proof: processes without the mark may be left
	LeftoverKilled int             `json:"leftover_killed,omitempty"`
	DroppedBytes   int64           `json:"dropped_output_bytes,omitempty"`
	At             *time.Time      `json:"at,omitempty"`
}

// Event is one entry of the timeline.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

// Stop is a stop request; the first one is kept.
type Stop struct {
	By           string    `json:"by"`
	At           time.Time `json:"at"`
	GraceSeconds float64   `json:"grace_seconds"`
	FullGrace    bool      `json:"patient,omitempty"` // the whole grace, also without a reaction
}

// Newer reports whether a newer sbx wrote the record.
func (r Record) Newer() bool { return r.Schema > Schema }

// Note adds an entry to the timeline.
func (r *Record) Note(at time.Time, event, detail string) {
	r.Events = append(r.Events, Event{At: at.UTC(), Event: event, Detail: detail})
}

// End is the end of a lingering sandbox whose program had ended before: Exit remains the
// program's own.
type End struct {
	Stop           *Stop    `json:"stop,omitempty"`
	TimedOut       bool     `json:"timed_out,omitempty"`
	SupervisorLost bool     `json:"supervisor_lost,omitempty"` // or its stub
	WatchdogBytes  int64    `json:"watchdog_bytes,omitempty"`  // resident bytes when the watchdog fired
	OOMKills       *int64   `json:"oom_kills,omitempty"`       // of the whole sandbox; nil = no counter
	PeakBytes      *int64   `json:"peak_bytes,omitempty"`
	CPUSeconds     *float64 `json:"cpu_seconds,omitempty"`
	CounterSource  string   `json:"counter_source,omitempty"`
	Emptied        string   `json:"emptied,omitempty"`  // the proof that no process is left
	Unproven       bool     `json:"unproven,omitempty"` // without that proof: processes without the mark may be left
}

// ProgramEnded reports whether the program's end is recorded, whether or not its sandbox has
// ended too.
func (r Record) ProgramEnded() bool {
	return r.Exit != nil && (r.State.Ended() || r.hasOwnExit())
}

// hasOwnExit reports whether the program ended before its sandbox: only such an exit has a
// time of its own.
func (r Record) hasOwnExit() bool { return r.KeepAfterExit && r.Exit != nil && r.Exit.At != nil }

// Close records the end of a sandbox: as the end of its program or, where that has ended
// before, as the end of the lingering sandbox.
func (r *Record) Close(e Exit) {
	if !r.hasOwnExit() {
		r.Exit = &e
		return
	}
	r.End = &End{
		Stop: e.Stop, TimedOut: e.TimedOut, SupervisorLost: e.SupervisorLost, WatchdogBytes: e.WatchdogBytes, Emptied: e.Emptied, Unproven: e.Unproven,
		OOMKills: e.OOMKills, PeakBytes: e.PeakBytes, CPUSeconds: e.CPUSeconds, CounterSource: e.CounterSource,
	}
}

// MayRun reports whether the record was closed without a proof that no process is left.
func (r Record) MayRun() bool {
	return r.Exit != nil && r.Exit.Unproven || r.End != nil && r.End.Unproven
}

// EndState is the state of an ended sandbox: exit 0 or a stop is `terminated`, everything else
// `failed`. A lingering one has the state of its program, unless it was stopped.
func (r Record) EndState() sandbox.State {
	e := r.Exit
	switch {
	case e == nil:
	case e.Stop != nil, r.End != nil && r.End.Stop != nil:
		return sandbox.StateTerminated
	case e.Code != nil && *e.Code == 0 && !e.TimedOut && e.WatchdogBytes == 0:
		return sandbox.StateTerminated
	}
	return sandbox.StateFailed
}
