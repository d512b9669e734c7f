package daytona

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Terminate stops a sandbox, which keeps its disk; an ephemeral one is deleted,
// as a stop would do it. With Delete it is destroyed (DESIGN section 2, Ending).
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	op := "terminate " + id
	w, err := c.detail(ctx, "terminate", id)
	if err != nil {
		return err
	}
	state := stateOf(w)
	r := httpx.Request{Op: op, Method: http.MethodPost, Path: httpx.Path("sandbox", w.ID, "stop")}
	switch ephemeral := w.AutoDeleteInterval != nil && *w.AutoDeleteInterval == 0; {
	case o.Delete, ephemeral && state == sandbox.StateRunning:
		r.Method, r.Path = http.MethodDelete, httpx.Path("sandbox", w.ID)
	case state == sandbox.StateStopped, state.Ended():
		return fault.New(fault.KindGone, "it is %s", w.State).At(c.name, op)
	case state == sandbox.StateTerminating:
		return nil // it is on its way already
	}
	var answer wireSandbox
	if _, err = c.http.JSON(ctx, r, &answer); err == nil {
		err = providers.About(c.name, op, w.ID, answer.ID)
	}
	if status := httpx.Status(err); status == http.StatusConflict || status == http.StatusBadRequest {
		return c.conflict(ctx, w, err)
	}
	return err
}

// conflict settles a request that came in the middle of a change: somebody else's
// end is as good as ours, any other change has a timer of the platform's.
func (c *Client) conflict(ctx context.Context, before wireSandbox, asked error) error {
	now, err := c.detail(ctx, "terminate", before.ID)
	switch {
	case fault.KindOf(err) == fault.KindNotFound: // an absence after a refusal proves nothing
		return fault.New(fault.KindUnavailable, "the API does not find it any more, and had refused: %w", asked)
	case err != nil:
		return asked
	case now.DesiredState == "destroyed" || stateOf(now) == sandbox.StateTerminating:
		return nil
	}
	timer, known := timers()[now.State]
	if !known {
		return asked
	}
	return fault.New(fault.KindUnavailable, "it cannot end from state %s: %w", now.State, asked).
		WithHint("the platform gives this state up after %s; end it then", sandbox.FormatDuration(timer))
}

// timers are how long the platform lets a state last before it calls it an error
// (Daytona, lifecycle timers).
func timers() map[string]time.Duration {
	return map[string]time.Duration{
		"creating": 15 * time.Minute, "starting": 5 * time.Minute, "restoring": 30 * time.Minute, "pulling_snapshot": 30 * time.Minute,
		"building_snapshot": time.Hour, "snapshotting": time.Hour,
	}
}

// apart is how far two 404s must be from each other: the API answers one also for
// a trouble of its own.
const apart = 2 * time.Second

// VerifyEnd takes the state as proof of a stop. A delete needs a second 404 some
// seconds after the first, and a list that does not hold it among the failed ones
// that are hidden from every other answer, since their runner may still have them.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	w, err := c.detail(ctx, "verify", id)
	if err == nil {
		s := stateOf(w)
		if !q.Delete && (s == sandbox.StateStopped || s.Ended()) {
			return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{c.fact("state", w.State)}}, nil
		}
		return providers.Proof{Ended: sandbox.False, Reason: "it is " + w.State}, nil
	}
	switch {
	case fault.KindOf(err) != fault.KindNotFound:
		return providers.Proof{}, err
	case q.Now.Sub(q.Since) < apart:
		return providers.Proof{Ended: sandbox.Unknown, Reason: "one 404 alone is no proof"}, nil
	}
	held := ""
	err = c.rows(ctx, hidden(id), func(w wireSandbox) bool {
		if w.ID == id {
			held = w.State
		}
		return true
	})
	switch {
	case err != nil:
		return providers.Proof{}, err
	case held != "":
		return providers.Proof{Ended: sandbox.False, Reason: "it is hidden as " + held + ", and its runner may still hold it"}, nil
	}
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{c.fact("second 404", "after "+apart.String()), c.fact("list", "not in it, hidden failures included")}}, nil
}

// hidden is a query that shows failed sandboxes whose delete hangs.
func hidden(id string) url.Values {
	v := filter(providers.Query{})
	v.Set("includeErroredDeleted", "true")
	if id != "" {
		v.Set("id", id)
		return v
	}
	v["states"] = []string{"error", "build_failed"}
	return v
}

func (c *Client) fact(what, value string) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: "API", At: c.now()}
}

// transitional says that a state passes by itself.
func transitional(s sandbox.State) bool {
	return slices.Contains([]sandbox.State{sandbox.StateProvisioning, sandbox.StateTerminating}, s)
}
