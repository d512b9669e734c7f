package daytona

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// pageSize is the longest page (Daytona API, limit 1..200).
const pageSize = 200

// List reads page by page in the order of creation: the API's default order, by last
// activity, changes while it is read, so that rows are skipped and repeated.
func (c *Client) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		err := c.eachRow(ctx, listQuery(q), func(w wireSandbox) bool { return yield(c.sandbox(w), nil) })
		if err != nil {
			yield(sandbox.Sandbox{}, err)
		}
	}
}

func listQuery(q providers.Query) url.Values {
	v := url.Values{"limit": {strconv.Itoa(pageSize)}, "sort": {"createdAt"}, "order": {"asc"}}
	if len(q.Labels) > 0 {
		text, err := json.Marshal(q.Labels)
		if err == nil {
			v.Set("labels", string(text))
		}
	}
	return v
}

// eachRow gives the rows of a query to take, each once, until take returns false.
func (c *Client) eachRow(ctx context.Context, query url.Values, take func(wireSandbox) bool) error {
	read := func(token string) (wirekit.Page[wireSandbox], error) {
		if token != "" {
			query.Set("cursor", token)
		}
		var page wirePage
		if _, err := c.API.JSON(ctx, httpx.Request{Op: "list", Path: "/sandbox", Query: query}, &page); err != nil {
			return wirekit.Page[wireSandbox]{}, c.listFault(err)
		}
		got, err := wirekit.NewPage(page.Items, page.NextCursor, pageSize, wireSandbox.id)
		return got, fault.Placed(err, c.Profile, "list")
	}
	return wirekit.EachRow(c.Profile, "list", read, wireSandbox.id, func(w wireSandbox) bool {
		c.recordRow(w)
		return take(w)
	})
}

func (w wireSandbox) id() string { return w.ID }

// listFault is the error of a listing. Without /api the address is that of the dashboard,
// which answers with a web page.
func (c *Client) listFault(err error) error {
	hint := fault.HintOf(err)
	if !strings.HasSuffix(c.API.Base(), "/api") {
		hint = "the url must end in /api"
	}
	err = c.ListFault(err, "list", hint)
	if f, ok := err.(*fault.Error); ok && f.Kind == fault.KindUnavailable && hint != "" { //nolint:errorlint // the outermost one is shown
		f.Hint = hint
	}
	return err
}

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
	if idle := w.AutoStopInterval; idle != nil && *idle > 0 && *idle < 1<<20 {
		s.IdleStop = time.Duration(*idle * float64(time.Minute))
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
