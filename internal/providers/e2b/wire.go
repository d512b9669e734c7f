package e2b

import (
	"time"

	"sbx/internal/httpx"
)

// wireSandbox is ListedSandbox and SandboxDetail of the API.
type wireSandbox struct {
	TemplateID      string            `json:"templateID"`
	Alias           string            `json:"alias"`
	SandboxID       string            `json:"sandboxID"`
	ClientID        string            `json:"clientID"`
	StartedAt       time.Time         `json:"startedAt"`
	EndAt           time.Time         `json:"endAt"`
	CPUCount        *float64          `json:"cpuCount"`
	MemoryMB        *int64            `json:"memoryMB"`
	DiskSizeMB      *int64            `json:"diskSizeMB"`
	Metadata        map[string]string `json:"metadata"`
	State           string            `json:"state"`
	EnvdAccessToken string            `json:"envdAccessToken"`
	Domain          string            `json:"domain"`
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
	Level     string            `json:"level"`
	Message   string            `json:"message"`
	Fields    map[string]string `json:"fields"`
	Line      string            `json:"line"` // of the older route: JSON as text
}

// wireMetric is SandboxMetric, envd's Metrics, or Novita's older form in MiB.
type wireMetric struct {
	TimestampUnix int64    `json:"timestampUnix"`
	CPUCount      *float64 `json:"cpuCount"`
	CPUUsedPct    *float64 `json:"cpuUsedPct"`
	MemUsed       *int64   `json:"memUsed"`
	MemTotal      *int64   `json:"memTotal"`
	MemUsedMiB    *int64   `json:"memUsedMiB"`
	MemTotalMiB   *int64   `json:"memTotalMiB"`
}

// wireEnvdMetric is Metrics of envd.
type wireEnvdMetric struct {
	TS         int64    `json:"ts"`
	CPUCount   *float64 `json:"cpu_count"`
	CPUUsedPct *float64 `json:"cpu_used_pct"`
	MemUsed    *int64   `json:"mem_used"`
	MemTotal   *int64   `json:"mem_total"`
}

// wireEvent is one lifecycle event.
type wireEvent struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	EventData map[string]any `json:"eventData"`
}

// wireQuota is the answer of Novita's /sandboxes/quota.
type wireQuota struct {
	Limit wireAmounts `json:"limit"`
	Usage wireAmounts `json:"usage"`
}

type wireAmounts struct {
	Instances *float64 `json:"concurrentInstances"`
	VCPU      *float64 `json:"concurrentVcpu"`
	RAM       *float64 `json:"concurrentRamMb"`
}
