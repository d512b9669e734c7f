package monotask

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// wireSandbox is one row of the list, and the answer about one.
type wireSandbox struct {
	ID         string    `json:"id" odd:"error"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"created_at"`
	AgeMinutes *float64  `json:"age_minutes"`
	AgentType  string    `json:"agent_type"`
	TaskID     string    `json:"task_id"`
}

type wireStats struct {
	Active         *int64 `json:"active"`
	Provisioning   *int64 `json:"provisioning"`
	Terminating    *int64 `json:"terminating"`
	TotalCreated   *int64 `json:"total_created"`
	TotalDestroyed *int64 `json:"total_destroyed"`
}

// wireResources is what an agent reports about itself.
type wireResources struct {
	ID         string   `json:"id"` // of an answer that names its sandbox
	CPUPercent *float64 `json:"cpu_percent"`
	MemoryMB   *float64 `json:"memory_mb"`
	DurationMS *float64 `json:"duration_ms"`
	Operations *int64   `json:"operations"`
}

// wireCleaned is the answer of a cleanup; its shape is not published.
type wireCleaned struct {
	Cleaned    *int64 `json:"cleaned"`
	Terminated *int64 `json:"terminated"`
	Count      *int64 `json:"count"`
}

// wireLine is a line of a log that is an object. The types of its fields are not published.
type wireLine struct {
	Message   any `json:"message"`
	Line      any `json:"line"`
	Text      any `json:"text"`
	Msg       any `json:"msg"`
	Level     any `json:"level"`
	Stream    any `json:"stream"`
	Timestamp any `json:"timestamp"`
	At        any `json:"at"`
	Time      any `json:"time"`
}

// exitWords are the error codes of the sandbox SDK, and MonoTask's states, which are no exits.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassGone, "its session or container ended while it ran", "session_terminated", "session_destroyed", "410"),
		sandbox.ExitWords(sandbox.ClassTransport, "the process no longer exists, and how it ended is unknown", "process_not_found"),
		sandbox.ExitWords(sandbox.ClassTransport, "the connection failed; the command may still run", "rpc_transport_error", "operation_interrupted"),
		sandbox.ExitWords(sandbox.ClassInfra, "no container answered", "container_unavailable", "503"),
		sandbox.ExitWords(sandbox.ClassUnknown, "a state, not an exit: how the program ended is unknown", "terminated", "failed"),
	)
}
