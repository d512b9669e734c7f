package daytona

import (
	"cmp"
	"context"
	"maps"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one by id or name. A missing one is fault.KindNotFound: the API answers alike for
// an unknown id, a deleted sandbox and one of another organization.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	w, err := c.detail(ctx, "get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

func (c *Client) detail(ctx context.Context, op, id string) (wireSandbox, error) {
	var w wireSandbox
	_, err := c.API.JSON(ctx, httpx.Request{Op: op + " " + id, Path: httpx.Path("sandbox", id)}, &w)
	if err == nil { // GET takes names too, and id is one that was selected
		err = providers.CheckAnswerID(c.Profile, op+" "+id, id, w.ID)
	}
	if err != nil {
		return wireSandbox{}, err
	}
	c.recordRow(w)
	return w, nil
}

func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	c.recordRow(w)
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: TypeName, ID: w.ID, Name: w.Name, RawState: w.State, State: stateOf(w),
		CreatedAt: providers.ValidTime(w.CreatedAt), LastActivityAt: providers.ValidTime(w.LastActivityAt), ActivityBasis: sandbox.BasisRequests, ExpiresAt: providers.ValidTime(w.AutoDestroyAt), Activity: sandbox.Unknown,
		Template: w.Snapshot, Labels: maps.Clone(w.Labels), TaskID: w.Labels[sandbox.LabelTask], AgentType: w.Labels[sandbox.LabelAgentType],
		Limits: sandbox.Limits{CPU: w.CPU, MemoryBytes: gibibytes(w.Memory), DiskBytes: gibibytes(w.Disk), Isolation: "container"},
	}
	if s.Name == s.ID { // it has no name
		s.Name = ""
	}
	s.Name = cmp.Or(w.Labels[sandbox.LabelName], s.Name)
	if s.State == sandbox.StateFailed {
		s.EndedAt = w.UpdatedAt
		s.Exit = w.failureExit()
	}
	return s
}

// failureExit is the exit of a sandbox that the platform has set to failed.
func (w wireSandbox) failureExit() *sandbox.Exit {
	e := &sandbox.Exit{Raw: w.State, Class: sandbox.ClassInfra, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown}
	for what, value := range map[string]string{"error reason": w.ErrorReason, "runner": w.RunnerID} {
		if value != "" {
			e.Evidence = append(e.Evidence, sandbox.Evidence{What: what, Value: value, Source: "API", At: w.UpdatedAt})
		}
	}
	return e
}

// stateOf converts state and desired state: a started sandbox that is to be destroyed is
// terminating, however long the list shows it as started.
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
