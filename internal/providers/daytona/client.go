// Package daytona speaks Daytona's API and that of the toolbox inside its sandboxes.
//
// An end is a stop, which keeps the disk; only a delete destroys. A delete is asynchronous
// and hides failed sandboxes, and a 404 proves it only when it comes twice and the list
// agrees. Every call of the toolbox resets a sandbox's auto-stop timer unless a header
// prevents it; every read of this package sends that header.
//
// Commands run detached, with their output in files that are read by offset: a session of
// the toolbox is one long shell that `exit 5` ends for good, and the answers of the toolbox
// cannot carry binary output.
package daytona

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// TypeName is the provider type's name.
const TypeName = "daytona"

const (
	defaultURL = "https://app.daytona.io/api"
	// skipActivity keeps a read from counting as activity, which would reset the auto-stop
	// timer and the idle time (Daytona proxy).
	skipActivity = "X-Daytona-Skip-Last-Activity-Update"
)

// Client is one organization.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	target string

	mu      sync.Mutex
	account string            // the organization's id, once known
	boxes   map[string]string // sandbox id -> address of its toolbox
}

var (
	_ providers.Provider      = (*Client)(nil)
	_ providers.LogReader     = (*Client)(nil)
	_ providers.ProcessLister = (*Client)(nil)
	_ providers.UsageReader   = (*Client)(nil)
	_ providers.Launcher      = (*Client)(nil)
	_ providers.Commander     = (*Client)(nil)
	_ providers.Prober        = (*Client)(nil)
	_ providers.EventReader   = (*Client)(nil)
	_ providers.ExitReader    = (*Client)(nil)
	_ providers.QuotaReader   = (*Client)(nil)
	_ providers.Verifier      = (*Client)(nil)
	_ providers.Checker       = (*Client)(nil)
	_ providers.Clock         = (*Client)(nil)
	_ providers.Explainer     = (*Client)(nil)
)

// Type describes Daytona.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Daytona: sandboxes with a disk that outlives a stop", SwitchedOn: []string{"DAYTONA_API_KEY"}, TellsQuota: true,
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsState}, // its disk
		LabelsIn:  "`labels` of the parameters of `create`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "", Shows: "when a client last called (`lastActivityAt`)", Misses: "a program that works without a call from outside"},
			{Ability: "logs", Shows: "of what sbx created: what the program wrote; of others: what the image's entrypoint writes", Misses: "of others: what commands and sessions write"},
			{Ability: "usage", Shows: "processor and memory, now", Misses: "what waits"},
			{Ability: "processes", Shows: "commands of sbx that run inside", Misses: "commands of other clients: their calls move `lastActivityAt` while they are open"},
			{Ability: "probe", Shows: "whether the toolbox answers; twice 502 is definite", Misses: "whether the program does anything"},
		},
		Options: []providers.Option{
			{Name: "token", Env: "DAYTONA_API_KEY", Kind: providers.OptionText, Secret: true, Help: "API key; it belongs to one organization"},
			{Name: "url", Env: "DAYTONA_API_URL", Default: defaultURL, Kind: providers.OptionText, Help: "address of the API, with its /api"},
			{Name: "organization", Env: "DAYTONA_ORGANIZATION_ID", Kind: providers.OptionText, Account: true, Help: "organization id; a key needs none"},
			{Name: "target", Env: "DAYTONA_TARGET", Kind: providers.OptionText, Help: "region of new sandboxes"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	s := p.Settings
	if s["token"] == "" {
		return nil, fault.New(fault.KindAuth, "no API key is set").At(p.Name, "").WithHint("set DAYTONA_API_KEY, or token_env: in the profile")
	}
	header := http.Header{"X-Daytona-Source": {"sbx"}, "X-Daytona-Sdk-Version": {"0.205.1"}}
	header.Set("Authorization", "Bearer "+s["token"])
	if s["organization"] != "" {
		header.Set("X-Daytona-Organization-Id", s["organization"])
	}
	base, err := wirekit.NewBase(p, d, TypeName, httpx.Options{Base: cmp.Or(s["url"], defaultURL), Header: header, Secrets: []string{s["token"]}})
	if err != nil {
		return nil, err
	}
	return &Client{Base: base, target: s["target"], account: s["organization"], boxes: map[string]string{}, Reasons: wirekit.Reasons{
		"stats":    "the API counts nothing; the listing is counted",
		"activity": "the record's last activity is all that the API tells",
		"records":  "the provider's own list is all there is",
	}}, nil
}

// recordRow records the address of a sandbox's toolbox and the id of its organization.
func (c *Client) recordRow(w wireSandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ToolboxProxyURL != "" {
		c.boxes[w.ID] = strings.TrimRight(w.ToolboxProxyURL, "/") + "/" + w.ID
	}
	if c.account == "" {
		c.account = w.OrganizationID
	}
}

// toolbox addresses a request to the toolbox of a sandbox. passive keeps the request from
// counting as activity of the sandbox.
func (c *Client) toolbox(r httpx.Request, id string, passive bool) httpx.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.URL, r.OneSandbox = c.boxes[id]+r.Path, true
	if passive {
		r.Header = http.Header{skipActivity: {"true"}}
	}
	return r
}

// wireSandbox is Sandbox and SandboxListItem of the API. Its env is never read.
type wireSandbox struct {
	ID                 string            `json:"id"`
	OrganizationID     string            `json:"organizationId"`
	Name               string            `json:"name"`
	RunnerID           string            `json:"runnerId"`
	State              string            `json:"state"`
	DesiredState       string            `json:"desiredState"`
	Snapshot           string            `json:"snapshot"`
	ErrorReason        string            `json:"errorReason"`
	Recoverable        bool              `json:"recoverable"`
	CPU                *float64          `json:"cpu"`
	Memory             *float64          `json:"memory"` // GiB
	Disk               *float64          `json:"disk"`   // GiB
	Labels             map[string]string `json:"labels"`
	AutoStopInterval   *float64          `json:"autoStopInterval"` // minutes; 0 = never
	AutoDeleteInterval *float64          `json:"autoDeleteInterval"`
	AutoDestroyAt      time.Time         `json:"autoDestroyAt"`
	CreatedAt          time.Time         `json:"createdAt"`
	UpdatedAt          time.Time         `json:"updatedAt"`
	LastActivityAt     time.Time         `json:"lastActivityAt"`
	ToolboxProxyURL    string            `json:"toolboxProxyUrl"`
}

type wirePage struct {
	Items      httpx.List[wireSandbox] `json:"items"`
	NextCursor *string                 `json:"nextCursor"`
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

// wireExecute is ExecuteRequest of the toolbox.
type wireExecute struct {
	Command string            `json:"command"`
	Envs    map[string]string `json:"envs,omitempty"`
}

type wireExecuted struct {
	ExitCode *int   `json:"exitCode"` // an answer without one is invalid
	Result   string `json:"result"`
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
}

type wireAuditLog struct {
	Action       string    `json:"action"`
	ActorEmail   string    `json:"actorEmail"`
	TargetID     string    `json:"targetId"`
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
		sandbox.ExitWords(sandbox.ClassTransport, "the command's shell was killed, its status was lost, or it could not be started: -1 says no more", "-1"),
		sandbox.TimeoutWords(sandbox.Certain, "the daemon killed the whole process group for the limit that was sent; its output is lost", "process_execution_timeout"),
		sandbox.TimeoutWords(sandbox.Probable, "the daemon's limit, or that of a proxy on the way; output is lost", "408", "request_timeout"),
		sandbox.ExitWords(sandbox.ClassTransport, "a proxy gave up; the command may run on", "504"),
		sandbox.ExitWords(sandbox.ClassTransport, "the session has ended, not the sandbox; the command's end was not seen", "410", "session_ended"),
		sandbox.ExitWords(sandbox.ClassInfra, "the daemon inside is dead, of memory or by a kill; the sandbox stays listed as started for minutes", "502"),
	)
}
