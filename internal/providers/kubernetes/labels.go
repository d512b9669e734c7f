package kubernetes

import (
	"context"
	"encoding/json"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// EditLabels writes what has changed, unless the object has changed since it was read: then it is read once more,
// and written where its labels are still the same.
func (c *Client) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	op := "labels " + id
	o, err := c.readObject(ctx, "labels", id)
	if err != nil {
		return nil, err
	}
	before := labelsOf(o.Metadata)
	labels, changed, err := providers.EditedLabels(before, edit)
	if err != nil || !changed {
		return labels, fault.Placed(err, c.Profile, op)
	}
	patch, err := labelPatch(o.Metadata, before, labels)
	if err != nil {
		return nil, fault.Placed(err, c.Profile, op)
	}
	err = c.patch(ctx, op, o, patch)
	if httpx.Status(err) != http.StatusConflict {
		return labels, err
	}
	now, failed := c.readObject(ctx, "labels", id)
	if failed != nil {
		return nil, failed
	}
	if again, err := labelPatch(now.Metadata, labelsOf(now.Metadata), labels); err != nil || !sameChange(patch, again) {
		return nil, c.Fault(fault.KindUnavailable, op, "its labels were changed meanwhile").WithHint("try again")
	}
	patch.Metadata.ResourceVersion = now.Metadata.ResourceVersion
	return labels, c.patch(ctx, op, now, patch)
}

// labelPatch is the change from some labels to others. What was a label stays one.
func labelPatch(m wireMeta, before, after map[string]string) (wirePatch, error) {
	var p wirePatch
	p.Metadata.ResourceVersion = m.ResourceVersion
	p.Metadata.Labels, p.Metadata.Annotations = map[string]*string{}, map[string]*string{}
	for key := range before {
		if _, stays := after[key]; stays {
			continue
		}
		if _, is := m.Labels[key]; is {
			p.Metadata.Labels[key] = nil
		}
		if _, is := m.Annotations[key]; is {
			p.Metadata.Annotations[key] = nil
		}
	}
	written := map[string]string{}
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			written[key] = value
		}
	}
	labels, annotations, err := splitLabels(written)
	for key, value := range labels {
		p.Metadata.Labels[key] = &value
	}
	for key, value := range annotations {
		p.Metadata.Annotations[key] = &value
		if _, is := m.Labels[key]; is && !selects(key) { // somebody has set it as a label, which would show the old value elsewhere
			p.Metadata.Labels[key] = nil
		}
	}
	return p, err
}

func sameChange(a, b wirePatch) bool {
	same := func(a, b map[string]*string) bool {
		for key, value := range a {
			other, has := b[key]
			if !has || (value == nil) != (other == nil) || value != nil && *value != *other {
				return false
			}
		}
		return len(a) == len(b)
	}
	return same(a.Metadata.Labels, b.Metadata.Labels) && same(a.Metadata.Annotations, b.Metadata.Annotations)
}

// patch writes a change once.
func (c *Client) patch(ctx context.Context, op string, o object, p wirePatch) error {
	version, err := c.version(ctx, op, o.kind)
	if err != nil {
		return err
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = c.API.Do(ctx, httpx.Request{
		Op: op, Method: http.MethodPatch, Path: c.path(o.kind, version, o.Metadata.Name), Body: body, Header: http.Header{"Content-Type": {"application/merge-patch+json"}},
	})
	return c.admission(err)
}
