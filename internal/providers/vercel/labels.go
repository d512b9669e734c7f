package vercel

import (
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// EditLabels writes all tags, since the API replaces them (Vercel Sandbox documentation, Tags): what another
// client writes between the read and the write is lost. The tags are those of the name, so a session that is
// not the current one is refused.
func (c *Client) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	op := "labels " + id
	v, err := c.resolve(ctx, "labels", id)
	switch {
	case err != nil:
		return nil, err
	case v.box == nil:
		return nil, c.unnamed(op)
	case v.wasResumed():
		return nil, fault.New(fault.KindGone, "its session has ended, and its sandbox was resumed as %s", v.box.CurrentSessionID).At(c.Profile, op).
			WithHint("name that one: %s/%s", c.Profile, v.box.CurrentSessionID)
	}
	labels, changed, err := providers.EditedLabels(toLabels(v.box.Tags), edit)
	if err != nil || !changed {
		return labels, fault.Placed(err, c.Profile, op)
	}
	if len(labels) > maxTags {
		return nil, c.Fault(fault.KindUnsupported, op, "a sandbox can have %d tags, and these would be %d", maxTags, len(labels))
	}
	var now wireNamed
	_, err = c.API.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodPatch, Path: httpx.Path("v2", "sandboxes", v.box.Name), Query: c.teamQuery("projectId", c.project),
		JSON: map[string]any{"tags": toTags(labels)},
	}, &now)
	if err != nil {
		return nil, err
	}
	return labels, providers.CheckAnswerID(c.Profile, op, v.box.Name, now.Sandbox.Name)
}
