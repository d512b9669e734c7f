// Package record keeps the local provider's truth: one folder a sandbox, with
// a record that is written whole (write, fsync, rename), a lock that its
// supervisor holds for life, and the first stop request.
//
// The record holds facts, not judgements: wait status, counters, who stopped
// it. What they mean is worked out by whoever reads them. No process is started
// or signalled in this room.
package record

import (
	"encoding/json"
	"time"

	"sbx/internal/providers/local/identity"
	"sbx/internal/sandbox"
)

// Schema is the version of the record's form. A record with a higher one was
// written by a newer sbx and is read-only here.
const Schema = 1

// Record is one sandbox on disk. Environment values are never in it.
type Record struct {
	Schema    int               `json:"schema"`
	Version   string            `json:"sbx_version"`
	ID        string            `json:"id"`
	Name      string            `json:"name,omitempty"`
	State     sandbox.State     `json:"state"`
	Command   []string          `json:"command"`
	EnvNames  []string          `json:"env_names,omitempty"`
	Workdir   string            `json:"workdir"`
	Labels    map[string]string `json:"labels,omitempty"`
	TaskID    string            `json:"task_id,omitempty"`
	AgentType string            `json:"agent_type,omitempty"`
	Linger    bool              `json:"linger,omitempty"` // it stays when its program has ended

	CreatedAt time.Time `json:"created_at,omitzero"`
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`

	Limits     Limits           `json:"limits"`
	Supervisor identity.Process `json:"supervisor,omitzero"`
	Stub       identity.Process `json:"stub,omitzero"`
	Program    identity.Process `json:"program,omitzero"`
	Cgroup     json.RawMessage  `json:"cgroup,omitempty"` // the state of a cgroup.Group
	Exit       *Exit            `json:"exit,omitempty"`   // of the program; of the sandbox, too, where End is nil
	End        *End             `json:"end,omitempty"`
	Events     []Event          `json:"events,omitempty"`
}

// Limits are what the sandbox was started with; 0 = none.
type Limits struct {
	MemoryBytes int64               `json:"memory_bytes,omitempty"`
	CPU         float64             `json:"cpu,omitempty"` // cores
	PIDs        int64               `json:"pids,omitempty"`
	TTLSeconds  float64             `json:"ttl_seconds,omitempty"`
	OutputBytes int64               `json:"output_bytes,omitempty"`
	Enforcement sandbox.Enforcement `json:"enforcement"`
	Reason      string              `json:"enforcement_reason,omitempty"` // why not a better one
	Isolation   string              `json:"isolation"`
}

// Exit holds what was seen of the end.
type Exit struct {
	Code           *int       `json:"code,omitempty"`   // of a normal exit
	Signal         int        `json:"signal,omitempty"` // of a death by signal
	StartError     string     `json:"start_error,omitempty"`
	Stop           *Stop      `json:"stop,omitempty"`
	TimedOut       bool       `json:"timed_out,omitempty"`
	SupervisorLost bool       `json:"supervisor_lost,omitempty"`
	WatchdogBytes  int64      `json:"watchdog_bytes,omitempty"` // resident bytes when the watchdog fired
	OOMKills       *int64     `json:"oom_kills,omitempty"`      // nil = no counter
	KernelLog      string     `json:"kernel_log,omitempty"`     // the kernel's line about its kill for want of memory
	PeakBytes      *int64     `json:"peak_bytes,omitempty"`
	LastBytes      *int64     `json:"last_bytes,omitempty"` // last sample while it ran
	LastSampleAt   time.Time  `json:"last_sample_at,omitzero"`
	CPUSeconds     *float64   `json:"cpu_seconds,omitempty"`
	CounterSource  string     `json:"counter_source,omitempty"`
	Emptied        string     `json:"emptied,omitempty"`  // the proof that nothing of it is left
	Unproven       bool       `json:"unproven,omitempty"` // nothing proves that: it may have left processes that carry no mark
	LeftoverKilled int        `json:"leftover_killed,omitempty"`
	DroppedBytes   int64      `json:"dropped_output_bytes,omitempty"`
	At             *time.Time `json:"at,omitempty"`
}

// Event is one entry of the timeline.
type Event struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

// Stop is a request to end; the first one is kept.
type Stop struct {
	By           string    `json:"by"`
	At           time.Time `json:"at"`
	GraceSeconds float64   `json:"grace_seconds"`
	Patient      bool      `json:"patient,omitempty"` // the whole grace, also without a reaction
}

// Newer says that a newer sbx wrote the record.
func (r Record) Newer() bool { return r.Schema > Schema }

// Note adds an entry to the timeline.
func (r *Record) Note(at time.Time, event, detail string) {
	r.Events = append(r.Events, Event{At: at.UTC(), Event: event, Detail: detail})
}
