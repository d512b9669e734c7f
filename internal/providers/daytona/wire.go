package daytona

import (
	"slices"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// wireSandbox is Sandbox and SandboxListItem of the API. Its env is never read.
type wireSandbox struct {
	ID                 string         `json:"id" odd:"error"`
	OrganizationID     string         `json:"organizationId"`
	Name               string         `json:"name"`
	RunnerID           string         `json:"runnerId"`
	State              string         `json:"state"`
	DesiredState       string         `json:"desiredState"`
	Snapshot           string         `json:"snapshot"`
	ErrorReason        string         `json:"errorReason"`
	Recoverable        bool           `json:"recoverable"`
	CPU                *float64       `json:"cpu"`
	Memory             *float64       `json:"memory"` // GiB
	Disk               *float64       `json:"disk"`   // GiB
	Labels             wirekit.Labels `json:"labels"`
	AutoStopInterval   *float64       `json:"autoStopInterval"` // minutes; 0 = never
	AutoDeleteInterval *float64       `json:"autoDeleteInterval"`
	AutoDestroyAt      time.Time      `json:"autoDestroyAt"`
	CreatedAt          time.Time      `json:"createdAt"`
	UpdatedAt          time.Time      `json:"updatedAt"`
	LastActivityAt     time.Time      `json:"lastActivityAt"`
	ToolboxProxyURL    string         `json:"toolboxProxyUrl"`
}

type wirePage struct {
	Items      httpx.List[wireSandbox] `json:"items"`
	NextCursor wirekit.NextToken       `json:"nextCursor" odd:"error"`
}

// wireCreate is CreateSandbox of the API.
type wireCreate struct {
	Name       string            `json:"name,omitempty"`
	Snapshot   string            `json:"snapshot,omitempty"`
	Target     string            `json:"target,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	CPU        int               `json:"cpu,omitempty"`
	Memory     int               `json:"memory,omitempty"` // GiB
	Disk       int               `json:"disk,omitempty"`   // GiB
	TTLMinutes int               `json:"ttlMinutes"`
	AutoStop   int               `json:"autoStopInterval"` // minutes; 0 = never
	BuildInfo  *wireBuild        `json:"buildInfo,omitempty"`
}

type wireBuild struct {
	DockerfileContent string `json:"dockerfileContent"`
}

// wireLabels is SandboxLabels of the API, the answer to a write of them.
type wireLabels struct {
	Labels wirekit.Labels `json:"labels"`
}

// wireExecute is ExecuteRequest of the toolbox.
type wireExecute struct {
	Command string            `json:"command"`
	Envs    map[string]string `json:"envs,omitempty"`
}

type wireExecuted struct {
	ExitCode *int   `json:"exitCode" odd:"error"` // an answer without one is invalid
	Result   string `json:"result" odd:"error"`
}

// wireLogs is SessionCommandLogsResponse of the toolbox.
type wireLogs struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// wireMetrics is SystemMetrics of the toolbox.
type wireMetrics struct {
	TimestampUnix int64    `json:"timestampUnix"`
	CPUCount      *float64 `json:"cpuCount"`
	CPUUsedPct    *float64 `json:"cpuUsedPct"`
	MemUsed       *int64   `json:"memUsed"` // bytes, page cache included
	MemTotal      *int64   `json:"memTotal"`
	MemCache      *int64   `json:"memCache"`
}

type wireUsage struct {
	RegionUsage httpx.List[wireRegion] `json:"regionUsage"`
}

type wireRegion struct {
	RegionID string   `json:"regionId"`
	Class    string   `json:"sandboxClass"`
	CPU      *float64 `json:"totalCpuQuota"`
	CPUUsed  *float64 `json:"currentCpuUsage"`
	Mem      *float64 `json:"totalMemoryQuota"` // GiB
	MemUsed  *float64 `json:"currentMemoryUsage"`
	Disk     *float64 `json:"totalDiskQuota"` // GiB
	DiskUsed *float64 `json:"currentDiskUsage"`
}

type wireKey struct {
	Name        string   `json:"name"`
	Permissions []string `json:"permissions"`
}

type wireAudit struct {
	Items httpx.List[wireAuditLog] `json:"items"`
	Total *int64                   `json:"total" odd:"error"`
}

type wireAuditLog struct {
	ID           string    `json:"id" odd:"error"`
	Action       string    `json:"action"`
	ActorEmail   string    `json:"actorEmail"`
	TargetID     string    `json:"targetId" odd:"error"`
	ErrorMessage string    `json:"errorMessage"`
	Source       string    `json:"source"`
	CreatedAt    time.Time `json:"createdAt"`
}

type wireURL struct {
	URL string `json:"url"`
}

// exitWords are the toolbox's exit code, HTTP statuses and error codes (Daytona
// toolbox API, as observed). A killed child is 137.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassTransport, "the command's shell was killed, its status was lost, or it could not be started: -1 does not tell which", "-1"),
		sandbox.TimeoutWords(sandbox.Certain, "the daemon killed the whole process group at the requested limit; its output is lost", "process_execution_timeout"),
		sandbox.TimeoutWords(sandbox.Probable, "the limit of the daemon or of a proxy; output is lost", "408", "request_timeout"),
		sandbox.ExitWords(sandbox.ClassTransport, "a proxy timed out; the command may still run", "504"),
		sandbox.ExitWords(sandbox.ClassTransport, "the session ended, not the sandbox; the command's end is unknown", "410", "session_ended"),
		sandbox.ExitWords(sandbox.ClassInfra, "the daemon in the sandbox is dead, out of memory or killed; the sandbox stays listed as started for minutes", "502"),
	)
}
