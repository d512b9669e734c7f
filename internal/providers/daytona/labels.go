package daytona

import (
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// EditLabels writes all labels, since the API replaces them: what another client writes between the read and
// the write is lost.
func (c *Client) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	op := "labels " + id
	w, err := c.detail(ctx, "labels", id)
	if err != nil {
		return nil, err
	}
	labels, changed, err := providers.EditedLabels(w.Labels, edit)
	if err != nil || !changed {
		return labels, fault.Placed(err, c.Profile, op)
	}
	var stored wireLabels
	_, err = c.API.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodPut, Path: httpx.Path("sandbox", w.ID, "labels"), JSON: map[string]any{"labels": labels},
	}, &stored)
	return labels, c.withRight(op, err)
}

// withRight names the right that a refused write needs.
func (c *Client) withRight(op string, err error) error {
	if httpx.Status(err) != http.StatusForbidden {
		return err
	}
	return c.Fault(fault.KindAuth, op, "%w", err).WithHint(
		"the API key needs the permission write:sandboxes; `sbx doctor --provider %s` shows what it has", c.Profile,
	)
}
