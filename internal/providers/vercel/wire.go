package vercel

import (
	"encoding/json"
	"slices"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// millis is a Unix time or a duration in milliseconds; 0 and values out of range are
// neither.
type millis float64

// maxMillis is a time in the year 2096; as a duration it does not overflow.
const maxMillis = 4e12

func (m millis) time() time.Time {
	if m <= 0 || m > maxMillis {
		return time.Time{}
	}
	return providers.ValidTime(time.UnixMilli(int64(m)).UTC())
}

func (m millis) duration() time.Duration {
	if m <= 0 || m > maxMillis {
		return 0
	}
	return time.Duration(m) * time.Millisecond
}

// wireBox is Sandbox of the API: a name with its configuration.
type wireBox struct {
	Name              string         `json:"name" odd:"error"`
	Persistent        *bool          `json:"persistent"`
	Status            string         `json:"status"` // that of its current session
	StatusUpdatedAt   millis         `json:"statusUpdatedAt"`
	CurrentSessionID  string         `json:"currentSessionId" odd:"error"`
	CurrentSnapshotID string         `json:"currentSnapshotId"`
	VCPUs             *float64       `json:"vcpus"`
	Memory            *float64       `json:"memory"` // MB
	Runtime           string         `json:"runtime"`
	Image             string         `json:"image"`
	CreatedAt         millis         `json:"createdAt"` // of the name; unchanged by a resume
	ExpiresAt         millis         `json:"expiresAt"` // while it runs
	Tags              wirekit.Labels `json:"tags"`
}

// wireSession is Session of the API: one run of a VM.
type wireSession struct {
	ID                  string   `json:"id" odd:"error"`
	SourceSandboxName   string   `json:"sourceSandboxName" odd:"error"`
	Status              string   `json:"status"`
	Memory              *float64 `json:"memory"` // MB
	VCPUs               *float64 `json:"vcpus"`
	Runtime             string   `json:"runtime"`
	Timeout             millis   `json:"timeout"` // with extensions
	Cwd                 string   `json:"cwd"`
	RequestedAt         millis   `json:"requestedAt"`
	StartedAt           millis   `json:"startedAt"`
	RequestedStopAt     millis   `json:"requestedStopAt"`
	StoppedAt           millis   `json:"stoppedAt"`
	AbortedAt           millis   `json:"abortedAt"`
	SnapshottedAt       millis   `json:"snapshottedAt"`
	CreatedAt           millis   `json:"createdAt"`
	ActiveCPUDurationMS *float64 `json:"activeCpuDurationMs"` // after a regular stop
}

type wireOneSession struct {
	Session wireSession `json:"session"`
}

// wireNamed is the answer of a read by name, and of create.
type wireNamed struct {
	Sandbox wireBox     `json:"sandbox"`
	Session wireSession `json:"session"`
}

type wirePage struct {
	Sandboxes  httpx.List[wireBox] `json:"sandboxes"`
	Pagination struct {
		Next wirekit.NextToken `json:"next" odd:"error"`
	} `json:"pagination" odd:"error"`
}

type wireOneSnapshot struct {
	Snapshot struct {
		ID        string `json:"id"`
		Status    string `json:"status"` // created, deleted, failed
		ExpiresAt millis `json:"expiresAt"`
	} `json:"snapshot"`
}

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
	ID         string   `json:"id" odd:"error"`
	Name       string   `json:"name"`
	Args       []string `json:"args"`
	ExitCode   *int     `json:"exitCode" odd:"error"`
	StartedAt  millis   `json:"startedAt"`
	DurationMS millis   `json:"durationMs"`
}

type wireOneCommand struct {
	Command wireCommand `json:"command"`
}

type wireCommands struct {
	Commands httpx.List[wireCommand] `json:"commands"` // the newest first
}

type wireRun struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Cwd     string            `json:"cwd,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Wait    bool              `json:"wait"`
	Logs    bool              `json:"logs"`
	Timeout int64             `json:"timeout,omitempty"` // milliseconds, after which it is killed
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

type wireKill struct {
	Signal int `json:"signal"`
}

// exitWords are the states of a session, which a command without an exit code takes,
// and the codes of the stream and of errors (Vercel Sandbox API). A time limit, a kill and the
// kernel all show as 137, which triage.ExitFacts.Ran and Limit may tell apart.
func exitWords() []sandbox.ExitWord {
	stopped := sandbox.ExitWords(sandbox.ClassStopped, "its session was stopped while it ran, by a client or by its time limit", "stopped")
	stopped[0].Cause, stopped[0].Confidence = sandbox.CauseStopped, sandbox.Hint
	return slices.Concat(
		stopped,
		sandbox.ExitWords(sandbox.ClassInfra, "the platform aborted its session", "aborted", "failed"),
		sandbox.ExitWords(
			sandbox.ClassTransport, "its session is changing its state; the command's end is unknown", "stopping", "snapshotting", "sandbox_stopping",
			"sandbox_snapshotting", "422",
		),
		sandbox.ExitWords(sandbox.ClassGone, "its session has stopped; the session's record shows when", "sandbox_stopped", "410"),
		sandbox.ExitWords(sandbox.ClassGone, "the sandbox cannot be resumed: its snapshot does not exist", "snapshot_not_found"),
		sandbox.ExitWords(sandbox.ClassTransport, "the stream was interrupted; the command may still run", "sandbox_stream_closed", "stream_ended_early"),
	)
}
