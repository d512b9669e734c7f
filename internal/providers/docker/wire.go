package docker

import (
	"encoding/json"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
)

// wireRow is ContainerSummary of the Engine API.
type wireRow struct {
	ID      string         `json:"Id" odd:"error"`
	Names   []string       `json:"Names"` // each with a slash in front
	Image   string         `json:"Image"`
	ImageID string         `json:"ImageID"`
	Command string         `json:"Command"`
	Created int64          `json:"Created"` // Unix time, in seconds
	State   string         `json:"State"`
	Status  string         `json:"Status"` // "Up 5 minutes", "Exited (137) 2 hours ago"
	Labels  wirekit.Labels `json:"Labels"`
}

// wireContainer is ContainerInspectResponse of the Engine API. Its environment is never read.
type wireContainer struct {
	ID           string         `json:"Id" odd:"error"`
	Created      time.Time      `json:"Created"`
	Path         string         `json:"Path"`
	Args         []string       `json:"Args"`
	Name         string         `json:"Name"`
	Image        string         `json:"Image"` // the id of its image
	RestartCount int            `json:"RestartCount"`
	ExecIDs      []string       `json:"ExecIDs"`
	State        wireState      `json:"State"`
	Config       wireConfig     `json:"Config"`
	HostConfig   wireHostConfig `json:"HostConfig"`
}

type wireState struct {
	Status     string      `json:"Status" odd:"error"`
	Running    bool        `json:"Running"`
	OOMKilled  bool        `json:"OOMKilled"`
	Error      string      `json:"Error"` // of its start
	ExitCode   *int        `json:"ExitCode"`
	StartedAt  time.Time   `json:"StartedAt"`
	FinishedAt time.Time   `json:"FinishedAt"`
	Health     *wireHealth `json:"Health"` // nil = it has no health check
}

// wireHealth is Health of the Engine API.
type wireHealth struct {
	Status        string `json:"Status"` // "none", "starting", "healthy", "unhealthy"
	FailingStreak int    `json:"FailingStreak"`
	Log           []struct {
		End      time.Time `json:"End"`
		ExitCode int       `json:"ExitCode"`
		Output   string    `json:"Output"`
	} `json:"Log"`
}

type wireConfig struct {
	Image       string         `json:"Image"`
	Tty         bool           `json:"Tty"`
	Labels      wirekit.Labels `json:"Labels"`
	Healthcheck struct {
		Test []string `json:"Test"` // "CMD-SHELL" and a text, "CMD" and words, or "NONE"
	} `json:"Healthcheck"`
}

type wireHostConfig struct {
	Memory        *int64            `json:"Memory"`   // bytes; 0 = no limit
	NanoCPUs      *int64            `json:"NanoCpus"` // 1e-9 cores; 0 = no limit
	PidsLimit     *int64            `json:"PidsLimit"`
	StorageOpt    map[string]string `json:"StorageOpt"`
	Runtime       string            `json:"Runtime"`
	AutoRemove    bool              `json:"AutoRemove"`
	RestartPolicy wireRestart       `json:"RestartPolicy"`
}

type wireRestart struct {
	Name string `json:"Name"` // "", "no", "always", "unless-stopped", "on-failure"
}

// wireUpdate is ContainerUpdateRequest of the Engine API.
type wireUpdate struct {
	RestartPolicy wireRestart `json:"RestartPolicy"`
}

// wireImage is ImageInspect of the Engine API.
type wireImage struct {
	Config struct {
		Labels wirekit.Labels `json:"Labels"`
	} `json:"Config"`
}

// wireCreate is ContainerCreateRequest of the Engine API.
type wireCreate struct {
	Image      string            `json:"Image"`
	Entrypoint []string          `json:"Entrypoint"`
	Cmd        []string          `json:"Cmd"`
	Env        []string          `json:"Env,omitempty"`
	Labels     map[string]string `json:"Labels"`
	HostConfig wireCreateHost    `json:"HostConfig"`
}

type wireCreateHost struct {
	Memory      int64             `json:"Memory,omitempty"`
	MemorySwap  int64             `json:"MemorySwap,omitempty"` // memory and swap together
	NanoCPUs    int64             `json:"NanoCpus,omitempty"`
	PidsLimit   int64             `json:"PidsLimit,omitempty"`
	StorageOpt  map[string]string `json:"StorageOpt,omitempty"`
	NetworkMode string            `json:"NetworkMode,omitempty"`
	Runtime     string            `json:"Runtime,omitempty"`
}

type wireCreated struct {
	ID       string   `json:"Id" odd:"error"`
	Warnings []string `json:"Warnings"`
}

// wireExecConfig is ExecConfig of the Engine API.
type wireExecConfig struct {
	AttachStdin  bool     `json:"AttachStdin"`
	AttachStdout bool     `json:"AttachStdout"`
	AttachStderr bool     `json:"AttachStderr"`
	Tty          bool     `json:"Tty"`
	Cmd          []string `json:"Cmd"`
	Env          []string `json:"Env,omitempty"`
	WorkingDir   string   `json:"WorkingDir,omitempty"`
}

type wireExecStart struct {
	Detach bool `json:"Detach"`
	Tty    bool `json:"Tty"`
}

// wireExec is ExecInspectResponse of the Engine API.
type wireExec struct {
	ID            string          `json:"ID" odd:"error"`
	Running       bool            `json:"Running"`
	ExitCode      *int            `json:"ExitCode" odd:"error"`
	Pid           int64           `json:"Pid"`
	ContainerID   string          `json:"ContainerID"`
	ProcessConfig wireExecProcess `json:"ProcessConfig"`
}

type wireExecProcess struct {
	Entrypoint string   `json:"entrypoint"`
	Arguments  []string `json:"arguments"`
}

// wireStats is ContainerStatsResponse of the Engine API, for Linux.
type wireStats struct {
	ID          string                 `json:"id"` // "" = an older engine
	Read        time.Time              `json:"read"`
	PidsStats   wireTally              `json:"pids_stats"`
	CPUStats    wireCPU                `json:"cpu_stats"`
	MemoryStats wireMemory             `json:"memory_stats"`
	BlkioStats  wireBlkio              `json:"blkio_stats"`
	Networks    map[string]wireNetwork `json:"networks"`
}

type wireTally struct {
	Current *int64 `json:"current"` // tasks: processes and threads
}

type wireCPU struct {
	CPUUsage struct {
		TotalUsage *int64 `json:"total_usage"` // nanoseconds
	} `json:"cpu_usage"`
}

type wireMemory struct {
	Usage    *int64           `json:"usage"`
	MaxUsage *int64           `json:"max_usage"` // control groups of version 1
	Limit    *int64           `json:"limit"`
	Stats    map[string]int64 `json:"stats"`
}

type wireBlkio struct {
	Serviced []struct {
		Op    string `json:"op"`
		Value int64  `json:"value"`
	} `json:"io_serviced_recursive"`
}

type wireNetwork struct {
	RxPackets int64 `json:"rx_packets"`
	TxPackets int64 `json:"tx_packets"`
}

// wireEvent is EventMessage of the Engine API.
type wireEvent struct {
	Type   string `json:"Type"`
	Action string `json:"Action"`
	Actor  struct {
		ID         string            `json:"ID"`
		Attributes map[string]string `json:"Attributes"`
	} `json:"Actor"`
	TimeNano int64 `json:"timeNano"`
}

// wireVersion is SystemVersion of the Engine API.
type wireVersion struct {
	Version       string                    `json:"Version"`
	APIVersion    string                    `json:"ApiVersion"`
	MinAPIVersion string                    `json:"MinAPIVersion"`
	Components    httpx.List[wireComponent] `json:"Components"`
}

type wireComponent struct {
	Name    string `json:"Name"`
	Version string `json:"Version"`
}

// wireLibpod is what is read of Podman's own information (libpod/define.Info).
type wireLibpod struct {
	Host struct {
		CgroupControllers json.RawMessage `json:"cgroupControllers"` // names; null = none
	} `json:"host"`
}

// wireInfo is SystemInfo of the Engine API.
type wireInfo struct {
	ID                string   `json:"ID"`
	Containers        int64    `json:"Containers"`
	ContainersRunning *float64 `json:"ContainersRunning"`
	NCPU              *float64 `json:"NCPU"`
	MemTotal          *float64 `json:"MemTotal"` // bytes
	Driver            string   `json:"Driver"`
	CgroupVersion     string   `json:"CgroupVersion"`
	OperatingSystem   string   `json:"OperatingSystem"`
	Warnings          []string `json:"Warnings"`
}
