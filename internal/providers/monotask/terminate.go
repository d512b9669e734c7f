package monotask

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// EndsFailed says that a failed sandbox stays in the list until its DELETE.
func (*Client) EndsFailed() bool { return true }

// Terminate deletes a sandbox. One that has ended by its record is fault.KindGone, unless
// Delete is set.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	r, err := c.sandboxRequest("terminate", id)
	if err != nil {
		return err
	}
	s := o.Seen
	if s == nil {
		now, err := c.Get(ctx, id)
		if err != nil && (!o.Insist || !wirekit.Missing(err)) {
			return providers.NothingSent(err)
		}
		s = &now
	}
	if s.State.Ended() && !o.Delete && !o.Insist {
		return c.Fault(fault.KindGone, r.Op, "it has ended: %s", s.RawState)
	}
	return providers.EndFailed(c.sendDelete(ctx, r))
}

// sendDelete sends a DELETE. The answer is not published; an empty one and an object without
// "success": false count as accepted.
func (c *Client) sendDelete(ctx context.Context, r httpx.Request) error {
	r.Method = http.MethodDelete
	res, err := c.API.Do(ctx, r)
	if err != nil || len(bytes.TrimSpace(res.Body)) == 0 {
		return err
	}
	var answer *struct {
		Success *bool `json:"success"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer == nil {
		return c.Fault(fault.KindUnavailable, r.Op, "the answer is not an object: unknown whether the request was carried out")
	}
	if answer.Success != nil && !*answer.Success {
		return c.Fault(fault.KindUnavailable, r.Op, "the worker reports that it was not done")
	}
	return nil
}

// RemoveRecord sends a DELETE for a sandbox that is gone, which Terminate does not: the worker
// keeps the list apart from the sandboxes, and it may have a row without a sandbox. A worker
// that answers 404 keeps the row.
func (c *Client) RemoveRecord(ctx context.Context, id string) error {
	r, err := c.sandboxRequest("remove the record of", id)
	if err != nil {
		return err
	}
	err = c.sendDelete(ctx, r)
	if wirekit.Missing(err) {
		return c.Fault(fault.KindUnsupported, r.Op, "the worker lists it, but answers its DELETE as if it did not exist: %w", err).
			WithHint("remove the record in the worker itself")
	}
	return err
}

// VerifyEnd checks that the list does not have the sandbox as running, and after a delete not at
// all. The worker keeps list and sandboxes apart; they differ when its state is corrupt. Concurrent calls share a
// list that was requested after each of them began.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	rows, err := c.lists.readShared(ctx, func(ctx context.Context) ([]wireSandbox, error) { return c.readList(ctx, "verify") })
	if err != nil {
		return providers.Proof{}, err
	}
	for _, w := range rows {
		if w.ID == id && (q.Delete || !c.sandbox(w).State.Ended()) {
			return providers.Proof{Ended: sandbox.False, Reason: "the list still shows it as " + w.Status}, nil
		}
	}
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{c.Evidence("list", "not in it, or ended", c.Profile)}}, nil
}

// Cleanup starts one of the provider's own cleanups.
func (c *Client) Cleanup(ctx context.Context, emergency bool) (providers.Cleaned, error) {
	r := httpx.Request{Op: "cleanup", Method: http.MethodPost, Path: "/api/sandbox/cleanup", Header: c.admin}
	if emergency {
		r.Op, r.Path = "emergency cleanup", "/api/sandbox/cleanup/emergency"
	}
	res, err := c.API.Do(ctx, r)
	if err != nil {
		return providers.Cleaned{}, err
	}
	var w wireCleaned
	if json.Unmarshal(res.Body, &w) != nil {
		w = wireCleaned{} // the format is not published
	}
	for _, n := range []*int64{w.Cleaned, w.Terminated, w.Count} {
		if n != nil {
			return providers.Cleaned{Count: n}, nil
		}
	}
	return providers.Cleaned{}, nil
}
