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

// page is how many events are asked for at once: the most that the API gives.
const page = 500

// Events reads what a sandbox's agent reported, oldest first. Rows that are not
// understood are left out and told as an error beside the others. No events is an
// answer only where the history, which fails when the database does, has none
// either; else it is fault.KindUnavailable.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	r := &history{c: c, id: id, seen: map[string]bool{}}
	err := r.all(ctx)
	if err == nil && len(r.seen) == 0 && r.odd == 0 {
		err = c.confirmNone(ctx, id)
	}
	if err == nil && r.odd > 0 {
		err = fault.New(fault.KindUnavailable, "%d of %d events are not understood", r.odd, r.odd+len(r.seen)).At(c.name, "events "+id)
	}
	slices.Reverse(r.events)
	slices.SortStableFunc(r.events, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return r.events, err
}

// history is one reading of a sandbox's events, newest first. The list grows at
// its front while it is read, so rows come twice and never get lost.
type history struct {
	c      *Client
	id     string
	events []sandbox.Event
	seen   map[string]bool
	odd    int // rows that are not understood
}

func (r *history) all(ctx context.Context) error {
	total := int64(0)
	for offset := 0; ; {
		var w wireEvents
		query := url.Values{"limit": {strconv.Itoa(page)}, "offset": {strconv.Itoa(offset)}}
		if err := r.c.json(ctx, below("events", r.id, "events", query), &w); err != nil {
			return err
		}
		rows, err := w.Events.Rows()
		if err != nil {
			return fault.Placed(err, r.c.name, "events "+r.id)
		}
		if offset == 0 && w.Total != nil {
			total = *w.Total
		}
		known := len(r.seen) + r.odd
		r.add(rows)
		have := int64(len(r.seen) + r.odd)
		switch {
		case len(rows) < page && have < total:
			return fault.New(fault.KindUnavailable, "lists %d of %d events", have, total).At(r.c.name, "events "+r.id)
		case len(rows) < page:
			return nil
		case len(r.seen)+r.odd == known:
			return fault.New(fault.KindUnavailable, "the listing loops").At(r.c.name, "events "+r.id)
		}
		offset += len(rows)
	}
}

// add takes the rows of a page that have not come before.
func (r *history) add(rows []json.RawMessage) {
	for _, row := range rows {
		w, ok := readEvent(row)
		switch {
		case !ok:
			r.odd++
		case !r.seen[w.ID]:
			r.seen[w.ID] = true
			r.events = append(r.events, sandbox.Event{At: w.CreatedAt.Time, Event: w.Type, Detail: detail(w)})
		}
	}
}

// readEvent reads a row; one without id, type or time is none.
func readEvent(row json.RawMessage) (wireEvent, bool) {
	var w wireEvent
	err := json.Unmarshal(row, &w)
	return w, err == nil && w.ID != "" && w.Type != "" && !w.CreatedAt.IsZero()
}

// confirmNone says whether a sandbox really has no events: the list of events
// answers the same for a broken database, the history does not.
func (c *Client) confirmNone(ctx context.Context, id string) error {
	w, err := c.trajectory(ctx, id, "")
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return fault.New(fault.KindUnavailable, "cannot tell whether it has events: %w", err).At(c.name, "events "+id).
			WithHint("an empty answer of this API also means that its database fails")
	case w.Total > 0 || w.Heartbeats.Count > 0 || len(w.rows) > 0:
		return fault.New(fault.KindUnavailable, "shows no events and counts %d", max(w.Total, w.Heartbeats.Count, int64(len(w.rows)))).At(c.name, "events "+id)
	}
	return nil
}

// detail is what an event says, in one line: the first of the words that its kind
// is likely to have.
func detail(w wireEvent) string {
	const most = 200
	var data map[string]any
	if json.Unmarshal(w.Data, &data) != nil {
		return ""
	}
	for _, key := range []string{"file_path", "tool", "tool_name", "error", "message", "reason", "status", "text", "content"} {
		text, ok := data[key].(string)
		if text = strings.Join(strings.Fields(text), " "); !ok || text == "" {
			continue
		}
		if runes := []rune(text); len(runes) > most {
			text = string(runes[:most]) + "..."
		}
		return text
	}
	return ""
}
