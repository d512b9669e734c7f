package e2b

import (
	"slices"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// wireSandbox is ListedSandbox and SandboxDetail of the API.
type wireSandbox struct {
	TemplateID      string         `json:"templateID"`
	Alias           string         `json:"alias"`
	SandboxID       string         `json:"sandboxID" odd:"error"`
	ClientID        string         `json:"clientID" odd:"error"`
	StartedAt       time.Time      `json:"startedAt"`
	EndAt           time.Time      `json:"endAt"`
	CPUCount        *float64       `json:"cpuCount"`
	MemoryMB        *int64         `json:"memoryMB"`
	DiskSizeMB      *int64         `json:"diskSizeMB"`
	Metadata        wirekit.Labels `json:"metadata"`
	State           string         `json:"state"`
	EnvdAccessToken string         `json:"envdAccessToken"`
	Domain          string         `json:"domain" odd:"error"`
	Lifecycle       wireLifecycle  `json:"lifecycle"`
}

// wireLifecycle is SandboxLifecycle of the API.
type wireLifecycle struct {
	AutoResume bool `json:"autoResume"` // traffic wakes it when it is paused
}

// wireCreate is NewSandbox of the API.
type wireCreate struct {
	TemplateID string            `json:"templateID"`
	Timeout    int64             `json:"timeout"` // seconds
	Secure     bool              `json:"secure"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	EnvVars    map[string]string `json:"envVars,omitempty"`
}

// wireLogs is SandboxLogsV2Response, or SandboxLogs of the older route.
type wireLogs struct {
	Logs httpx.List[wireLog] `json:"logs"`
}

type wireLog struct {
	Timestamp time.Time         `json:"timestamp"`
	Message   string            `json:"message"`
	Fields    map[string]string `json:"fields"`
	Line      string            `json:"line"` // of the older route: JSON as text

	position time.Time // its timestamp; without one that of the entry before it
}

// wireMetric is SandboxMetric, envd's Metrics, or Novita's older form in MiB.
type wireMetric struct {
	TimestampUnix int64     `json:"timestampUnix"`
	Timestamp     time.Time `json:"timestamp"` // older clouds have only this one
	CPUCount      *float64  `json:"cpuCount"`
	CPUUsedPct    *float64  `json:"cpuUsedPct"`
	MemUsed       *int64    `json:"memUsed"`
	MemTotal      *int64    `json:"memTotal"`
	MemUsedMiB    *int64    `json:"memUsedMiB"`
	MemTotalMiB   *int64    `json:"memTotalMiB"`
}

// at is the time of a sample; zero = it has none.
func (m wireMetric) at() time.Time {
	if m.TimestampUnix > 0 {
		return time.Unix(m.TimestampUnix, 0).UTC()
	}
	return providers.ValidTime(m.Timestamp.UTC())
}

// wireManyMetrics is SandboxesWithMetrics: the newest sample of each sandbox that has one.
type wireManyMetrics struct {
	Sandboxes map[string]wireMetric `json:"sandboxes"`
}

// wireEnvdMetric is Metrics of envd.
type wireEnvdMetric struct {
	CPUCount   *float64 `json:"cpu_count"`
	CPUUsedPct *float64 `json:"cpu_used_pct"`
	MemUsed    *int64   `json:"mem_used"`
	MemTotal   *int64   `json:"mem_total"`
}

type wireEvent struct {
	ID        string         `json:"id" odd:"error"`
	Type      string         `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	EventData map[string]any `json:"eventData"`
}

type wireQuota struct {
	Limit wireAmounts `json:"limit"`
	Usage wireAmounts `json:"usage"`
}

type wireAmounts struct {
	Instances *float64 `json:"concurrentInstances"`
	VCPU      *float64 `json:"concurrentVcpu"`
	RAM       *float64 `json:"concurrentRamMb"`
}

// wireStart is StartRequest of process.Process.
type wireStart struct {
	Process wireProcess `json:"process"`
	Tag     string      `json:"tag,omitempty"`
	PTY     *wirePTY    `json:"pty,omitempty"`
	Stdin   bool        `json:"stdin"`
}

type wireProcess struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Envs map[string]string `json:"envs,omitempty"`
	Cwd  string            `json:"cwd,omitempty"`
}

type wirePTY struct {
	Size wireSize `json:"size"`
}

type wireSize struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// wireFrame is one message of the stream of Start.
type wireFrame struct {
	Event struct {
		Start *struct {
			PID uint32 `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
			PTY    []byte `json:"pty"`
		} `json:"data"`
		End *wireEnd `json:"end"`
	} `json:"event"`
}

// wireEnd is how a process ended. The API omits a zero code; -1 stands for any signal, which
// Status names.
type wireEnd struct {
	ExitCode int    `json:"exitCode"`
	Exited   bool   `json:"exited"`
	Status   string `json:"status"`
	Error    string `json:"error"`
}

// wireEndOfStream is the last frame's payload.
type wireEndOfStream struct {
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// wireSelect names a process, by number or tag.
type wireSelect struct {
	PID uint32 `json:"pid,omitempty"`
	Tag string `json:"tag,omitempty"`
}

// exitWords are the exit code of the end event, and the codes that end a Connect stream (E2B
// envd, as observed). A death by signal has exit code -1 and a status like "signal: killed",
// which is classified instead. The death of a child that a shell passes on is 137.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassKilledUnknown, "-1 means any signal; the status names it", "-1"),
		sandbox.TimeoutWords(sandbox.Probable, "the limit sent with the call; envd ends only the program, its child processes may still run", "deadline_exceeded"),
		sandbox.ExitWords(sandbox.ClassTransport, "the stream ended, not the program: it may still run", "canceled", "aborted"),
		sandbox.ExitWords(sandbox.ClassTransport, "the process no longer exists, and how it ended is unknown", "not_found"),
		sandbox.ExitWords(
			sandbox.ClassLauncher, "envd did not start it", "invalid_argument", "unauthenticated", "permission_denied", "failed_precondition", "unimplemented",
		),
		sandbox.ExitWords(sandbox.ClassInfra, "envd or the connection to it failed", "internal", "unknown", "unavailable", "data_loss", "resource_exhausted"),
		sandbox.ExitWords(sandbox.ClassInfra, "the host's answer for an ended sandbox, or one whose envd is dead: its text tells which", "502"),
	)
}
