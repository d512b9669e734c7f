package monotask

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// EndsFailed says that a failed sandbox stays in the list until its DELETE.
func (*Client) EndsFailed() bool { return true }

// Terminate deletes a sandbox. One whose record says that it has ended is
// fault.KindGone, unless what is left of it shall go too.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	r, err := c.below("terminate", id)
	if err != nil {
		return err
	}
	s := o.Seen
	if s == nil {
		now, err := c.Get(ctx, id)
		if err != nil {
			return err
		}
		s = &now
	}
	if s.State.Ended() && !o.Delete {
		return fault.New(fault.KindGone, "it has ended: %s", s.RawState).At(c.name, r.Op)
	}
	return c.delete(ctx, r)
}

// delete sends a DELETE. What a good answer holds is not published: nothing, or an
// object that does not say that it failed.
func (c *Client) delete(ctx context.Context, r httpx.Request) error {
	r.Method = http.MethodDelete
	res, err := c.http.Do(ctx, r)
	if err != nil || len(bytes.TrimSpace(res.Body)) == 0 {
		return err
	}
	var answer *struct {
		Success *bool `json:"success"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer == nil {
		return fault.New(fault.KindUnavailable, "the answer is no object: whether it was heeded is not known").At(c.name, r.Op)
	}
	if answer.Success != nil && !*answer.Success {
		return fault.New(fault.KindUnavailable, "the worker says that it has not done it").At(c.name, r.Op)
	}
	return nil
}

// RemoveRecord sends the DELETE that Terminate does not send to what is gone: the
// list is kept apart from the sandboxes, and may name one that is not there. A
// worker that answers 404 keeps it.
func (c *Client) RemoveRecord(ctx context.Context, id string) error {
	r, err := c.below("remove the record of", id)
	if err != nil {
		return err
	}
	err = c.delete(ctx, r)
	if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
		return fault.New(fault.KindUnsupported, "the worker lists it and answers its DELETE as it answers what is not there: %w", err).At(c.name, r.Op).
			WithHint("the record has to be removed in the worker itself")
	}
	return err
}

// VerifyEnd holds the list against the answer about one: after a delete it must not hold
// it at all. The two are kept apart
// in the worker and disagree when its state is corrupt (DESIGN section 2). Those who
// hold at the same time share a list that was asked for after all of them came.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	rows, err := c.lists.read(ctx, func(ctx context.Context) ([]wireSandbox, error) { return c.rows(ctx, "verify") })
	if err != nil {
		return providers.Proof{}, err
	}
	for _, w := range rows {
		if w.ID == id && (q.Delete || !stateOf(w.Status).Ended()) {
			return providers.Proof{Ended: sandbox.False, Reason: "the list still shows it as " + w.Status}, nil
		}
	}
	fact := sandbox.Evidence{What: "list", Value: "not in it, or ended", Source: c.name, At: c.now()}
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{fact}}, nil
}

// Cleanup starts one of the provider's own cleanups.
func (c *Client) Cleanup(ctx context.Context, emergency bool) (providers.Cleaned, error) {
	r := httpx.Request{Op: "cleanup", Method: http.MethodPost, Path: "/api/sandbox/cleanup", Header: c.admin}
	if emergency {
		r.Op, r.Path = "emergency cleanup", "/api/sandbox/cleanup/emergency"
	}
	var w wireCleaned
	res, err := c.http.Do(ctx, r)
	if err != nil {
		return providers.Cleaned{}, err
	}
	if len(res.Body) > 0 {
		w = readCleaned(res.Body)
	}
	for _, n := range []*int64{w.Cleaned, w.Terminated, w.Count} {
		if n != nil {
			return providers.Cleaned{Count: n}, nil
		}
	}
	return providers.Cleaned{}, nil
}
