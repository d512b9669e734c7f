package daytona

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Terminate stops a sandbox, which keeps its disk; an ephemeral one is deleted, since a stop
// would delete it. With Delete it is destroyed.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	op := "terminate " + id
	w, err := c.detail(ctx, "terminate", id)
	if o.Insist && (wirekit.Missing(err) || err == nil && stateOf(w) != sandbox.StateTerminating) {
		w.ID, w.State, err = id, "started", nil
	}
	if err != nil {
		return providers.NothingSent(err)
	}
	state := stateOf(w)
	r := httpx.Request{Op: op, Method: http.MethodPost, Path: httpx.Path("sandbox", w.ID, "stop")}
	switch ephemeral := w.AutoDeleteInterval != nil && *w.AutoDeleteInterval == 0; {
	case o.Delete, ephemeral && state == sandbox.StateRunning:
		r.Method, r.Path = http.MethodDelete, httpx.Path("sandbox", w.ID)
	case state == sandbox.StateStopped, state.Ended():
		return c.Fault(fault.KindGone, op, "it is %s", w.State)
	case state == sandbox.StateTerminating:
		return nil // it ends already
	}
	var answer wireSandbox
	if _, err = c.API.JSON(ctx, r, &answer); err == nil {
		err = providers.CheckAnswerID(c.Profile, op, w.ID, answer.ID)
	}
	if status := httpx.Status(err); status == http.StatusConflict || status == http.StatusBadRequest {
		return c.resolveConflict(ctx, w, err)
	}
	return providers.EndFailed(err)
}

// resolveConflict is the result of a request that was refused during a change of state: an
// end that another client has asked for is a success, any other change has a timer of the
// platform.
func (c *Client) resolveConflict(ctx context.Context, before wireSandbox, asked error) error {
	now, err := c.detail(ctx, "terminate", before.ID)
	switch {
	case fault.KindOf(err) == fault.KindNotFound: // a 404 after a refusal is no proof of an end
		return fault.New(fault.KindUnavailable, "the API no longer finds it, after it refused the request: %w", asked)
	case err != nil:
		return asked
	case now.DesiredState == "destroyed" || stateOf(now) == sandbox.StateTerminating:
		return nil
	}
	timer, known := stateTimers()[now.State]
	if !known {
		return asked
	}
	refused := fault.New(fault.KindUnavailable, "it cannot be terminated in state %s: %w", now.State, asked)
	switch since := now.UpdatedAt; {
	case since.IsZero():
		return refused.WithHint("the platform ends this state %s after it began; terminate it then", sandbox.FormatDuration(timer))
	case !since.After(c.Now().Add(-timer)):
		return refused.WithHint("it has not changed since %s, and the platform should have ended this state %s later: only Daytona's support can; name %s to it",
			since.UTC().Format(time.RFC3339), sandbox.FormatDuration(timer), now.ID)
	}
	return refused.WithHint(
		"the platform ends this state after %s, at %s; terminate it then", sandbox.FormatDuration(timer),
		now.UpdatedAt.Add(timer).UTC().Format(time.RFC3339),
	)
}

// stateTimers are how long a state may last before the platform sets it to error (Daytona,
// lifecycle timers).
func stateTimers() map[string]time.Duration {
	return map[string]time.Duration{
		"creating": 15 * time.Minute, "starting": 5 * time.Minute, "restoring": 30 * time.Minute, "pulling_snapshot": 30 * time.Minute,
		"building_snapshot": time.Hour, "snapshotting": time.Hour,
	}
}

// missingPause is the least time between two 404s that prove a delete: a single one may come
// from a failure of the API.
const missingPause = 2 * time.Second

// VerifyEnd takes the state as proof of a stop where the list agrees. A delete is proved by a second 404 after
// missingPause and by its absence from the list, hidden failed sandboxes included: only that
// list shows them, and their runner may still have them.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	w, err := c.detail(ctx, "verify", id)
	if err == nil {
		if s := stateOf(w); q.Delete || s != sandbox.StateStopped && !s.Ended() {
			return providers.Proof{Ended: sandbox.False, Reason: "it is " + w.State}, nil
		}
		return c.verifyStopped(ctx, w)
	}
	switch {
	case fault.KindOf(err) != fault.KindNotFound:
		return providers.Proof{}, err
	case q.Now.Sub(q.Since) < missingPause:
		return providers.Proof{Ended: sandbox.Unknown, Reason: "one 404 alone proves nothing"}, nil
	}
	held, err := c.listed(ctx, id)
	switch {
	case err != nil:
		return providers.Proof{}, err
	case held.State != "":
		return providers.Proof{Ended: sandbox.False, Reason: "it is hidden as " + held.State + ", and its runner may still hold it"}, nil
	}
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{
		c.Evidence("second 404", "after "+missingPause.String(), "API"), c.Evidence("list", "not in it, nor among hidden failures", "API"),
	}}, nil
}

// verifyStopped compares the record of a stopped sandbox with its row in the list.
func (c *Client) verifyStopped(ctx context.Context, w wireSandbox) (providers.Proof, error) {
	row, err := c.listed(ctx, w.ID)
	if err != nil {
		return providers.Proof{}, err
	}
	if s := stateOf(row); row.State != "" && s != sandbox.StateStopped && !s.Ended() {
		return providers.Proof{Ended: sandbox.False, Reason: "it is " + w.State + ", and the list shows it as " + row.State}, nil
	}
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{
		c.Evidence("state", w.State, "API"), c.Evidence("list", cmp.Or(row.State, "not in it"), "API"),
	}}, nil
}

// listed is the row of a sandbox in the list, hidden failures included; the zero value where it is not listed.
func (c *Client) listed(ctx context.Context, id string) (row wireSandbox, err error) {
	err = c.eachRow(ctx, hiddenQuery(id), func(w wireSandbox) bool {
		if w.ID == id {
			row = w
		}
		return true
	})
	return row, err
}

// hiddenQuery is a query that includes failed sandboxes whose delete hangs.
func hiddenQuery(id string) url.Values {
	v := listQuery(providers.Query{})
	v.Set("includeErroredDeleted", "true")
	if id != "" {
		v.Set("id", id)
		return v
	}
	v["states"] = []string{"error", "build_failed"}
	return v
}

func isTransitional(s sandbox.State) bool {
	return slices.Contains([]sandbox.State{sandbox.StateProvisioning, sandbox.StateTerminating}, s)
}
