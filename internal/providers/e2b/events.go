package e2b

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Events reads the lifecycle of a sandbox, also after its end: no other official record says
// who ended it. Clones lack it.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	var all []sandbox.Event
	read := func(offset string) (rows []wireEvent, next string, err error) {
		rows, err = c.readEvents(ctx, id, cmp.Or(offset, "0"))
		if len(rows) >= pageSize {
			before, _ := strconv.Atoi(offset)
			next = strconv.Itoa(before + pageSize)
		}
		return rows, next, err
	}
	err := wirekit.EachRow(c.Profile, "events "+id, read, func(e wireEvent) string { return e.ID }, func(e wireEvent) bool {
		all = append(all, sandbox.Event{At: e.Timestamp, Event: strings.TrimPrefix(e.Type, "sandbox.lifecycle."), Detail: formatEventData(e.EventData)})
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	if len(all) == 0 { // the API answers alike for an unknown id and for a sandbox without events
		_, err = c.detail(ctx, id)
	}
	return all, err
}

func (c *Client) readEvents(ctx context.Context, id, offset string) ([]wireEvent, error) {
	var page httpx.List[wireEvent]
	r := httpx.Request{
		Op: "events " + id, Path: httpx.Path("events", "sandboxes", id),
		Query: url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {offset}, "orderAsc": {"true"}},
	}
	if c.dialect.old {
		r.Path = "/sandboxes/events"
		r.Query.Set("sandboxID", id)
	}
	_, err := c.API.JSON(ctx, r, &page)
	switch {
	case err == nil:
		rows, err := page.Rows()
		return rows, fault.Placed(err, c.Profile, r.Op)
	case !routeMissing(err):
		return nil, err
	}
	if _, gone := c.detail(ctx, id); gone != nil {
		return nil, gone
	}
	return nil, c.Fault(fault.KindUnsupported, "events "+id, "this API keeps no events")
}

func formatEventData(data map[string]any) string {
	words := make([]string, 0, len(data))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		words = append(words, fmt.Sprintf("%s=%v", key, data[key]))
	}
	return strings.Join(words, " ")
}

// Novita is a client of Novita's dialect, which alone has quotas.
type Novita struct{ *Client }

// Quota reads the limits of the account; older domains have no such route.
func (n *Novita) Quota(ctx context.Context) ([]providers.Quota, error) {
	var w wireQuota
	if _, err := n.API.JSON(ctx, httpx.Request{Op: "quota", Path: "/sandboxes/quota"}, &w); err != nil {
		if routeMissing(err) {
			return nil, n.Fault(fault.KindUnsupported, "quota", "this domain tells no limits")
		}
		return nil, err
	}
	return []providers.Quota{
		{Name: "concurrent sandboxes", Unit: "sandboxes", Used: w.Usage.Instances, Limit: w.Limit.Instances},
		{Name: "cpu", Unit: "cores", Used: w.Usage.VCPU, Limit: w.Limit.VCPU},
		{Name: "memory", Unit: "MiB", Used: w.Usage.RAM, Limit: w.Limit.RAM},
	}, nil
}
