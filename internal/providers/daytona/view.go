package daytona

import (
	"cmp"
	"context"
	"maps"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one by id or name. A missing one is fault.KindNotFound: the API says
// the same of what never was, of what is gone, and of another organization's.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	w, err := c.detail(ctx, "get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

func (c *Client) detail(ctx context.Context, op, id string) (wireSandbox, error) {
	var w wireSandbox
	_, err := c.http.JSON(ctx, httpx.Request{Op: op + " " + id, Path: httpx.Path("sandbox", id)}, &w)
	if err == nil { // GET takes names too, and what was selected is an id
		err = providers.About(c.name, op+" "+id, id, w.ID)
	}
	if err != nil {
		return wireSandbox{}, err
	}
	c.learn(w)
	return w, nil
}

// sandbox says in our words what the API said.
func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	c.learn(w)
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: TypeName, ID: w.ID, Name: w.Name, RawState: w.State, State: stateOf(w),
		CreatedAt: providers.Moment(w.CreatedAt), LastActivityAt: providers.Moment(w.LastActivityAt), ActivityBasis: sandbox.BasisRequests, ExpiresAt: providers.Moment(w.AutoDestroyAt), Activity: sandbox.Unknown,
		Template: w.Snapshot, Labels: maps.Clone(w.Labels), TaskID: w.Labels[sandbox.LabelTask], AgentType: w.Labels[sandbox.LabelAgentType],
		Limits: sandbox.Limits{CPU: w.CPU, MemoryBytes: gibibytes(w.Memory), DiskBytes: gibibytes(w.Disk), Isolation: "container"},
	}
	if s.Name == s.ID { // Daytona's word for none
		s.Name = ""
	}
	s.Name = cmp.Or(w.Labels[sandbox.LabelName], s.Name)
	if s.State == sandbox.StateFailed {
		s.EndedAt = w.UpdatedAt
		s.Exit = w.failure()
	}
	return s
}

// failure is the exit of a sandbox that the platform gave up.
func (w wireSandbox) failure() *sandbox.Exit {
	e := &sandbox.Exit{Raw: w.State, Class: sandbox.ClassInfra, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown}
	for what, value := range map[string]string{"error reason": w.ErrorReason, "runner": w.RunnerID} {
		if value != "" {
			e.Evidence = append(e.Evidence, sandbox.Evidence{What: what, Value: value, Source: "API", At: w.UpdatedAt})
		}
	}
	return e
}

// stateOf reads the state, and what it is meant to become: a started sandbox that
// shall be destroyed is on its way, however long the list still shows it.
func stateOf(w wireSandbox) sandbox.State {
	switch w.State {
	case "creating", "pending_build", "building_snapshot", "pulling_snapshot", "restoring", "starting", "resuming":
		return sandbox.StateProvisioning
	case "started", "resizing", "snapshotting", "forking":
		if w.DesiredState == "destroyed" || w.DesiredState == "stopped" {
			return sandbox.StateTerminating
		}
		return sandbox.StateRunning
	case "stopping", "destroying", "archiving", "pausing":
		return sandbox.StateTerminating
	case "stopped", "archived":
		if w.DesiredState == "destroyed" {
			return sandbox.StateTerminating
		}
		return sandbox.StateStopped
	case "paused":
		return sandbox.StatePaused
	case "error", "build_failed":
		return sandbox.StateFailed
	case "destroyed":
		return sandbox.StateTerminated
	}
	return sandbox.StateUnknown
}

func gibibytes(n *float64) *int64 {
	if n == nil || *n <= 0 || *n > 1<<20 {
		return nil
	}
	return new(int64(*n * 1024 * sandbox.MiB))
}
