package task

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Spec is what was asked for. It has no values of the environment: the program gets them,
// and they are never stored.
type Spec struct {
	Provider  string   `json:"provider"`
	Fallback  []string `json:"fallback,omitempty"` // in this order, after faults of the infrastructure
	Command   []string `json:"command"`
	EnvNames  []string `json:"env_names,omitempty"`
	Template  string   `json:"template,omitempty"`
	Snapshot  string   `json:"snapshot,omitempty"`
	Image     string   `json:"image,omitempty"`
	Name      string   `json:"name,omitempty"`
	AgentType string   `json:"agent_type,omitempty"`
	Workdir   string   `json:"workdir,omitempty"`
	Isolate   string   `json:"isolate,omitempty"`
	HardLimit bool     `json:"hard_limit,omitempty"`

	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	DiskBytes   int64             `json:"disk_bytes,omitempty"`
	CPU         float64           `json:"cpu,omitempty"`
	PIDs        int64             `json:"pids,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	MinTTL      time.Duration     `json:"min_ttl_ns,omitempty"` // minimal lifetime of the sandbox

	Limits    Limits          `json:"limits"`
	Attempts  int             `json:"attempts"`
	RetryOn   []sandbox.Class `json:"retry_on,omitempty"` // nil = the policies of retry.go
	Delay     time.Duration   `json:"delay_ns"`
	KeepAlive time.Duration   `json:"keep_alive_ns,omitempty"` // how long the sandbox outlives the task; 0 = not at all
	Callback  bool            `json:"callback,omitempty"`      // a control plane is notified of the end
	Session   string          `json:"session,omitempty"`       // a file of the sandbox that grows while the agent works
	// Description is the agent's task in words; it is no secret.
	Description string `json:"description,omitempty"`

	Push string `json:"push,omitempty"` // REMOTE=BRANCH, without credentials
	// NewBranch reports that the branch of Push is made for the task, at Base or the remote's
	// default branch.
	NewBranch bool   `json:"new_branch,omitempty"`
	Base      string `json:"base,omitempty"` // of the commits to publish; "" = all of HEAD
	Publish   string `json:"publish,omitempty"`

	// Sandbox is an existing one, for `resume`; zero = a new one is made.
	Sandbox   sandbox.Ref `json:"sandbox,omitzero"`
	SessionID string      `json:"session_id,omitempty"` // the agent's session in it
	Budget    string      `json:"budget,omitempty"`
	Warm      bool        `json:"warm,omitempty"` // an earlier version made a sandbox ahead of a task with it
	// Switches that are off.
	NoInactivity bool `json:"no_inactivity,omitempty"`
	NoKill       bool `json:"no_kill,omitempty"`
	NoForeign    bool `json:"no_foreign_stop,omitempty"`
	NoPolling    bool `json:"no_stop_polling,omitempty"`
	NoProbe      bool `json:"no_probe,omitempty"`
}

// Limits are the times that a task has. Zero = none.
type Limits struct {
	Command    time.Duration `json:"command_ns"`
	Attempt    time.Duration `json:"attempt_ns"` // create, command and collecting
	Deadline   time.Duration `json:"deadline_ns"`
	Inactivity time.Duration `json:"inactivity_ns"`
}

// Publishes reports whether the task publishes its work.
func (s Spec) Publishes() bool { return s.Push != "" || s.Publish != "" }

// NeedsSandboxAfterEnd reports whether the sandbox is needed after the program's end.
func (s Spec) NeedsSandboxAfterEnd() bool { return s.Publishes() || s.KeepAlive > 0 || s.Session != "" }

// Fingerprint distinguishes different specs of one key.
func (s Spec) Fingerprint() string {
	raw, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// TTL is the lifetime that the provider gives the sandbox of an attempt. It ends after the
// attempt's own limit and the time of keeping, and takes effect only when sbx is dead.
func (s Spec) TTL() time.Duration {
	longest := s.Limits.Attempt
	if longest <= 0 {
		longest = s.Limits.Deadline
	}
	return max(longest+DeadManGrace+s.KeepAlive, s.MinTTL)
}

func (t *Task) sandboxSpec(a Attempt, env []string) sandbox.Spec {
	s := t.Spec
	labels := map[string]string{}
	maps.Copy(labels, s.Labels)
	labels[sandbox.LabelNonce] = a.Nonce
	if s.KeepAlive > 0 && !a.IntentAt.IsZero() { // the only information for hosts without this store
		labels[sandbox.LabelKeptUntil] = a.IntentAt.Add(s.TTL()).UTC().Format(time.RFC3339)
	}
	box := sandbox.Spec{
		Name: s.Name, Command: s.Command, Env: env, Template: s.Template, Snapshot: s.Snapshot, Image: s.Image, Labels: labels,
		TaskID: t.ID, AgentType: s.AgentType, MemoryBytes: s.MemoryBytes, CPU: s.CPU, DiskBytes: s.DiskBytes, PIDs: s.PIDs,
		TTL: s.TTL(), Workdir: s.Workdir, RequireHardLimit: s.HardLimit, Isolate: s.Isolate,
	}
	if a.MemoryMB > 0 {
		box.MemoryBytes = a.MemoryMB * sandbox.MiB
	}
	return box
}

func randomName(prefix string, length int) string {
	return prefix + strings.ToLower(rand.Text())[:length]
}

// IsID reports whether an id has the form of NewID, and is not another program's task id.
func IsID(id string) bool { return strings.HasPrefix(id, sandbox.TaskIDPrefix) }

// NewID makes the id of a task.
func NewID() string { return randomName(sandbox.TaskIDPrefix, 12) }

// Work is a fingerprint of the work itself: the program, what it runs in and what becomes
// public. Provider, limits, attempts and values of the environment are not in it.
func (s Spec) Work() string {
	work := [][]string{s.Command, s.EnvNames, {
		s.Template, s.Snapshot, s.Image, s.Name, s.Workdir, s.AgentType, s.Push, s.Base, s.Publish, s.Session, s.Isolate,
	}}
	raw, err := json.Marshal(work)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// The variables that describe the work to an agent (S2-6, S2-7). They are made from the
// stored task, so that a process that takes it over can set them too.
const (
	variableCallback    = "CALLBACK_URL"
	variableBranch      = "BRANCH_NAME"
	variableDescription = "TASK_DESCRIPTION"
	variableData        = "TASK_DATA_BASE64"
)

// Branch is the branch to which the work is pushed; "" where it is not.
func (s Spec) Branch() string {
	return s.Push[strings.LastIndexByte(s.Push, '=')+1:]
}

// programEnvironment is the environment of a task's program: the operator's variables, and
// those that describe the work where the operator does not set them.
func (r *Runner) programEnvironment(t Task) []string {
	env := slices.Clone(r.env)
	add := func(name, value string) {
		own := slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		if value != "" && !own {
			env = append(env, name+"="+value)
		}
	}
	add(variableBranch, t.Spec.Branch())
	add(variableDescription, t.Spec.Description)
	if t.Spec.Callback {
		add(variableCallback, r.o.CallbackURL)
	}
	add(variableData, t.encodedData())
	return env
}

// encodedData is the description of the work as base64 JSON; "" where there is only the
// command.
func (t *Task) encodedData() string {
	if t.Spec.Description == "" && t.Spec.Branch() == "" && !t.Spec.Callback {
		return ""
	}
	raw, err := json.Marshal(struct {
		Task        string `json:"task"`
		Description string `json:"description"`
		Branch      string `json:"branch"`
	}{t.ID, t.Spec.Description, t.Spec.Branch()})
	if err != nil { // three strings always marshal
		return ""
	}
	return base64.StdEncoding.EncodeToString(raw)
}
