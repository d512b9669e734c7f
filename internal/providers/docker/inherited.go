package docker

import (
	"context"
	"maps"
	"strings"
	"sync"

	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// imageLabels remembers the labels of images, by their ids: an image never changes.
type imageLabels struct {
	mu  sync.Mutex
	all map[string]wirekit.Labels
}

// labelsOfImage reads the labels of an image; false = the engine does not have it any more.
func (c *Client) labelsOfImage(ctx context.Context, op, id string) (labels wirekit.Labels, found bool, err error) {
	c.images.mu.Lock()
	labels, found = c.images.all[id]
	c.images.mu.Unlock()
	if found || id == "" {
		return labels, found, nil
	}
	var w wireImage
	switch err := c.json(ctx, httpx.Request{Op: op, Path: httpx.Path("images", id, "json")}, &w); {
	case wirekit.Missing(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	c.images.mu.Lock()
	defer c.images.mu.Unlock()
	if c.images.all == nil {
		c.images.all = map[string]wirekit.Labels{}
	}
	c.images.all[id] = w.Config.Labels
	return w.Config.Labels, true, nil
}

// ownLabels are the labels of a container without those of sbx that it has from its image: `docker commit`
// keeps the labels of a container in the image, and whatever is made of it has them. What protects counts from
// anywhere, and labels of others are what their users want them to be.
func (c *Client) ownLabels(ctx context.Context, op, image string, labels wirekit.Labels) (wirekit.Labels, error) {
	if !marked(labels) {
		return labels, nil
	}
	inherited, found, err := c.labelsOfImage(ctx, op, image)
	if err != nil {
		return nil, err
	}
	own := maps.Clone(labels)
	if !found { // the image may have had them, so that they prove no owner
		delete(own, sandbox.LabelOwner)
		delete(own, sandbox.LabelNonce)
		return own, nil
	}
	made := labels[sandbox.LabelNonce] != inherited[sandbox.LabelNonce] // a create of sbx has written its labels
	for key, value := range inherited {
		if got, has := labels[key]; !has || got != value || !isMark(key) || made && everyCreateWrites(key) {
			continue
		}
		delete(own, key)
	}
	return own, nil
}

// marked reports whether a container has labels of sbx that count only as its own.
func marked(labels wirekit.Labels) bool {
	for key := range labels {
		if isMark(key) {
			return true
		}
	}
	return false
}

func isMark(key string) bool {
	switch key {
	case sandbox.LabelKeep, sandbox.LabelKeptUntil, sandbox.LabelUnreadable:
		return false
	}
	return strings.HasPrefix(key, "sbx/")
}

func everyCreateWrites(key string) bool {
	switch key {
	case sandbox.LabelOwner, sandbox.LabelRun, sandbox.LabelExpires, sandbox.LabelNonce:
		return true
	}
	return false
}
