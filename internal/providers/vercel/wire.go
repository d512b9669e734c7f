package vercel

import (
	"encoding/json"
	"time"
)

// millis is a moment in milliseconds of Unix time; 0 and nonsense are no moment.
type millis float64

func (m millis) time() time.Time {
	if m <= 0 || m > 4e12 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// wireBox is Sandbox of the API: a name with its configuration.
type wireBox struct {
	Name             string            `json:"name"`
	Persistent       *bool             `json:"persistent"`
	Status           string            `json:"status"`
	StatusUpdatedAt  millis            `json:"statusUpdatedAt"`
	CurrentSessionID string            `json:"currentSessionId"`
	VCPUs            *float64          `json:"vcpus"`
	Memory           *float64          `json:"memory"` // MB
	Runtime          string            `json:"runtime"`
	Image            string            `json:"image"`
	CreatedAt        millis            `json:"createdAt"`
	ExpiresAt        millis            `json:"expiresAt"`
	Tags             map[string]string `json:"tags"`
}

// wireSession is Session of the API: one run of a VM.
type wireSession struct {
	ID                  string   `json:"id"`
	SourceSandboxName   string   `json:"sourceSandboxName"`
	Status              string   `json:"status"`
	Memory              *float64 `json:"memory"` // MB
	VCPUs               *float64 `json:"vcpus"`
	Runtime             string   `json:"runtime"`
	Timeout             millis   `json:"timeout"`
	Cwd                 string   `json:"cwd"`
	RequestedAt         millis   `json:"requestedAt"`
	StartedAt           millis   `json:"startedAt"`
	RequestedStopAt     millis   `json:"requestedStopAt"`
	StoppedAt           millis   `json:"stoppedAt"`
	AbortedAt           millis   `json:"abortedAt"`
	SnapshottedAt       millis   `json:"snapshottedAt"`
	CreatedAt           millis   `json:"createdAt"`
	ActiveCPUDurationMS *float64 `json:"activeCpuDurationMs"`
}

type wireSession1 struct {
	Session wireSession `json:"session"`
}

// wireNamed is the answer about a name, and of create.
type wireNamed struct {
	Sandbox wireBox     `json:"sandbox"`
	Session wireSession `json:"session"`
}

type wirePage struct {
	Sandboxes  []wireBox `json:"sandboxes"`
	Pagination struct {
		Next *string `json:"next"`
	} `json:"pagination"`
}

// wireCreate is the body of a create.
type wireCreate struct {
	ProjectID  string            `json:"projectId"`
	Name       string            `json:"name"`
	Timeout    int64             `json:"timeout"` // milliseconds
	Persistent bool              `json:"persistent"`
	Runtime    string            `json:"runtime,omitempty"`
	Image      string            `json:"image,omitempty"`
	Source     *wireSource       `json:"source,omitempty"`
	Resources  *wireResources    `json:"resources,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
}

type wireSource struct {
	Type       string `json:"type"`
	SnapshotID string `json:"snapshotId"`
}

type wireResources struct {
	VCPUs int `json:"vcpus"`
}

// wireCommand is Command of the API; a null exit code means that it runs.
type wireCommand struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	ExitCode   *int     `json:"exitCode"`
	StartedAt  millis   `json:"startedAt"`
	DurationMS *float64 `json:"durationMs"`
}

type wireCommands struct {
	Commands []wireCommand `json:"commands"`
}

// wireRun is the body of a command.
type wireRun struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Cwd     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Wait    bool              `json:"wait"`
	Logs    bool              `json:"logs"`
}

// wireLine is one line of an ndjson stream: a command, a chunk of output, or a
// failure in the middle of it.
type wireLine struct {
	Command *wireCommand    `json:"command"`
	Stream  string          `json:"stream"`
	Data    json.RawMessage `json:"data"` // text, or code and message of a failure
}

type wireFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
