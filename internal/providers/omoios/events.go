package omoios

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// eventPageSize is the longest page of events (OmoiOS API).
const eventPageSize = 500

// Events reads the events of a sandbox's agent, oldest first. Rows that cannot be read are left
// out and reported as an error beside the others. An empty list is confirmed by the history,
// which fails with the database; unconfirmed it is fault.KindUnavailable.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	r := &eventReader{c: c, id: id, seen: map[string]bool{}}
	err := r.readAll(ctx)
	if err == nil && len(r.seen) == 0 && r.invalid == 0 {
		err = c.confirmNoEvents(ctx, id)
	}
	if err == nil && r.invalid > 0 {
		err = c.Fault(fault.KindUnavailable, "events "+id, "%d of %d events are not understood", r.invalid, r.invalid+len(r.seen))
	}
	slices.Reverse(r.events)
	slices.SortStableFunc(r.events, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return r.events, err
}

// eventReader reads the events of a sandbox, newest first. The list grows at its front while it
// is read, so rows may come twice and are never lost.
type eventReader struct {
	c       *Client
	id      string
	events  []sandbox.Event
	seen    map[string]bool
	invalid int // rows that cannot be read
}

func (r *eventReader) readAll(ctx context.Context) error {
	total := int64(0)
	for offset := 0; ; {
		var w wireEvents
		query := url.Values{"limit": {strconv.Itoa(eventPageSize)}, "offset": {strconv.Itoa(offset)}}
		if err := r.c.readJSON(ctx, sandboxRequest("events", r.id, "events", query), &w); err != nil {
			return err
		}
		rows, err := w.Events.Rows()
		if err != nil {
			return fault.Placed(err, r.c.Profile, "events "+r.id)
		}
		if offset == 0 && w.Total != nil {
			total = *w.Total
		}
		known := len(r.seen) + r.invalid
		r.addRows(rows)
		have := int64(len(r.seen) + r.invalid)
		switch {
		case len(rows) < eventPageSize && have < total:
			return r.c.Fault(fault.KindUnavailable, "events "+r.id, "lists %d of %d events", have, total)
		case len(rows) < eventPageSize:
			return nil
		case len(r.seen)+r.invalid == known:
			return r.c.Fault(fault.KindUnavailable, "events "+r.id, "the listing loops")
		}
		offset += len(rows)
	}
}

func (r *eventReader) addRows(rows []json.RawMessage) {
	for _, row := range rows {
		w, ok := readEvent(row)
		switch {
		case !ok:
			r.invalid++
		case !r.seen[w.ID]:
			r.seen[w.ID] = true
			r.events = append(r.events, sandbox.Event{At: w.CreatedAt.Time, Event: w.Type, Detail: eventDetail(w)})
		}
	}
}

// readEvent reads a row; one without id, type or time is invalid.
func readEvent(row json.RawMessage) (wireEvent, bool) {
	var w wireEvent
	err := json.Unmarshal(row, &w)
	return w, err == nil && w.ID != "" && w.Type != "" && !w.CreatedAt.IsZero()
}

// confirmNoEvents checks by the history that a sandbox has no events: the list of events is
// empty also when the database fails, the history is an error then.
func (c *Client) confirmNoEvents(ctx context.Context, id string) error {
	w, err := c.readHistory(ctx, id, "")
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return c.Fault(fault.KindUnavailable, "events "+id, "cannot tell whether it has events: %w", err).
			WithHint("an empty answer of this API also means that its database fails")
	case w.Total > 0 || w.Heartbeats.Count > 0 || len(w.rows) > 0:
		return c.Fault(fault.KindUnavailable, "events "+id, "shows no events and counts %d", max(w.Total, w.Heartbeats.Count, int64(len(w.rows))))
	}
	return nil
}

// eventDetail is one line about an event: the first text field that events are known to have.
func eventDetail(w wireEvent) string {
	const maxLength = 200
	var data map[string]any
	if json.Unmarshal(w.Data, &data) != nil {
		return ""
	}
	for _, key := range []string{"file_path", "tool", "tool_name", "error", "message", "reason", "status", "text", "content"} {
		text, ok := data[key].(string)
		if text = strings.Join(strings.Fields(text), " "); !ok || text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > maxLength {
			text = string(runes[:maxLength]) + "..."
		}
		return text
	}
	return ""
}
