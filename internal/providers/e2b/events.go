package e2b

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// Events reads the lifecycle of a sandbox, also of one that is gone: it is the
// only official word on who ended it. Clones lack it.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	var all []sandbox.Event
	seen := map[string]bool{}
	for offset := 0; ; offset += pageSize {
		page, err := c.events(ctx, id, offset)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if !seen[e.ID] {
				seen[e.ID] = true
				all = append(all, sandbox.Event{At: e.Timestamp, Event: strings.TrimPrefix(e.Type, "sandbox.lifecycle."), Detail: detailOf(e.EventData)})
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	if len(all) == 0 { // the API does not tell an unknown id from a quiet one
		_, err := c.detail(ctx, id)
		return nil, err
	}
	return all, nil
}

func (c *Client) events(ctx context.Context, id string, offset int) ([]wireEvent, error) {
	var page httpx.List[wireEvent]
	r := httpx.Request{
		Op: "events " + id, Path: httpx.Path("events", "sandboxes", id),
		Query: url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(offset)}, "orderAsc": {"true"}},
	}
	if c.dialect.old {
		r.Path = "/sandboxes/events"
		r.Query.Set("sandboxID", id)
	}
	_, err := c.api.JSON(ctx, r, &page)
	switch {
	case err == nil:
		rows, err := page.Rows()
		return rows, fault.Placed(err, c.name, r.Op)
	case !absent(err):
		return nil, err
	}
	if _, gone := c.detail(ctx, id); gone != nil {
		return nil, gone
	}
	return nil, fault.New(fault.KindUnsupported, "this API keeps no events").At(c.name, "events "+id)
}

// detailOf writes an event's data as key=value words.
func detailOf(data map[string]any) string {
	words := make([]string, 0, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		words = append(words, fmt.Sprintf("%s=%v", key, data[key]))
	}
	return strings.Join(words, " ")
}
