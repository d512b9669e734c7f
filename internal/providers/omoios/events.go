package omoios

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/agentlog"
	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// eventPageSize is the longest page of events (OmoiOS API).
const eventPageSize = 500

// Events reads the events of a sandbox's agent, oldest first. Rows that cannot be read are left
// out and reported as an error beside the others. An empty list is confirmed by the history,
// which fails with the database; unconfirmed it is fault.KindUnavailable.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	var events []sandbox.Event
	var decoder agentlog.Decoder
	err := c.readEvents(ctx, id, 0, func(w wireEvent) bool {
		e := decoder.Decode(agentlog.Raw{Type: w.Type, At: w.CreatedAt.Time, Data: w.Data})
		events = append(events, sandbox.Event{At: e.At, Event: e.Type, Detail: e.What})
		return true
	})
	slices.Reverse(events)
	slices.SortStableFunc(events, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return events, err
}

// AgentEvents is providers.AgentEventReader's; errors as of Events.
func (c *Client) AgentEvents(ctx context.Context, id string, page int, add func(providers.AgentEvent) bool) error {
	return c.readEvents(ctx, id, page, func(w wireEvent) bool {
		return add(providers.AgentEvent{ID: w.ID, Type: w.Type, Source: w.Source, At: w.CreatedAt.Time, Data: w.Data})
	})
}

// readEvents gives the events of a sandbox to add, the newest first.
func (c *Client) readEvents(ctx context.Context, id string, page int, add func(wireEvent) bool) error {
	if page <= 0 || page > eventPageSize {
		page = eventPageSize
	}
	r := &eventReader{c: c, id: id, page: page, add: add, seen: map[string]bool{}}
	err := r.readAll(ctx)
	if err == nil && len(r.seen) == 0 && r.invalid == 0 {
		err = c.confirmNoEvents(ctx, id)
	}
	if err == nil && r.invalid > 0 {
		err = c.Fault(fault.KindUnavailable, "events "+id, "%d of %d events are invalid", r.invalid, r.invalid+len(r.seen))
	}
	return err
}

// eventReader reads the events of a sandbox, newest first. The list grows at its front while it
// is read, so rows may come twice and are never lost.
type eventReader struct {
	c       *Client
	id      string
	page    int                  // how many rows are requested
	add     func(wireEvent) bool // false = no more are wanted
	seen    map[string]bool
	enough  bool // add has returned false
	invalid int  // rows that cannot be read
}

func (r *eventReader) readAll(ctx context.Context) error {
	total := int64(0)
	for offset := 0; ; {
		var w wireEvents
		query := url.Values{"limit": {strconv.Itoa(r.page)}, "offset": {strconv.Itoa(offset)}}
		if err := r.c.readJSON(ctx, sandboxRequest("events", r.id, "events", query), &w); err != nil {
			return err
		}
		if err := providers.CheckAnswerID(r.c.Profile, "events "+r.id, r.id, w.SandboxID); err != nil {
			return err
		}
		rows, err := w.Events.Rows()
		if err != nil {
			r.addRows(rows)
			return fault.Placed(err, r.c.Profile, "events "+r.id)
		}
		if offset == 0 && w.Total != nil {
			total = *w.Total
		}
		known := len(r.seen) + r.invalid
		r.addRows(rows)
		have := int64(len(r.seen) + r.invalid)
		switch {
		case r.enough:
			return nil
		case len(rows) < r.page && have < total:
			return r.c.Fault(fault.KindUnavailable, "events "+r.id, "lists %d of %d events", have, total)
		case len(rows) < r.page:
			return nil
		case len(r.seen)+r.invalid == known:
			return r.c.Fault(fault.KindUnavailable, "events "+r.id, "the listing repeats itself")
		}
		offset += len(rows)
	}
}

func (r *eventReader) addRows(rows []json.RawMessage) {
	for _, row := range rows {
		w, ok := readEvent(row, r.id)
		switch {
		case !ok:
			r.invalid++
		case !r.seen[w.ID]:
			r.seen[w.ID] = true
			r.enough = !r.add(w) || r.enough
		}
	}
}

// readEvent reads a row; one without id, type or time, or of another sandbox, is invalid.
func readEvent(row json.RawMessage, sandboxID string) (wireEvent, bool) {
	var w wireEvent
	_, err := httpx.Decode(row, &w)
	return w, err == nil && w.ID != "" && w.Type != "" && !w.CreatedAt.IsZero() && (w.SandboxID == "" || w.SandboxID == sandboxID)
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
			WithHint("an empty answer of this API can mean that its database fails")
	case w.Total > 0 || w.Heartbeats.Count > 0 || len(w.rows) > 0:
		return c.Fault(fault.KindUnavailable, "events "+id, "shows no events but counts %d", max(w.Total, w.Heartbeats.Count, int64(len(w.rows))))
	}
	return nil
}

const (
	historyPageSize = 100
	// maxHistoryPages bounds the search for the last work: work that lies more than a
	// thousand events back does not keep a sandbox.
	maxHistoryPages = 10
)

// Activity is the time of the last work and of the last heartbeat. A heartbeat is no work: it
// comes every 30 s, also in a hung turn and after completion. fault.KindNotFound for a sandbox
// without any event; fault.KindUnavailable for a row that cannot be read, since it may be the
// last work.
func (c *Client) Activity(ctx context.Context, id string) (providers.Activity, error) {
	var found providers.Activity
	var newest wireEvent // without heartbeats
	var beat, started moment
	var guard wirekit.PageGuard
	cursor := ""
	for n := range maxHistoryPages {
		w, err := c.readHistory(ctx, id, cursor)
		if err != nil {
			return providers.Activity{}, err
		}
		if n == 0 {
			if err := c.checkHistory(id, w); err != nil {
				return providers.Activity{}, err
			}
			beat, found = w.Heartbeats.Last.moment, c.heartbeats(w)
		}
		last, ok := lastWork(w)
		if !ok {
			return providers.Activity{}, c.Fault(fault.KindUnavailable, "activity "+id, "an event is invalid")
		}
		if newest.Type == "" {
			newest = newestEvent(w)
			c.setWaiting(&found, newest)
		}
		if at := newestStart(w); at.After(started.Time) {
			started = at
		}
		if last.Type != "" {
			return c.worked(found, last, started, beat), nil
		}
		if last, err := w.checkNext(&guard); err != nil {
			return providers.Activity{}, fault.Placed(err, c.Profile, "activity "+id)
		} else if last {
			return found, nil
		}
		cursor = w.Next
	}
	return found, nil
}

// worked adds the last work of a sandbox. A worker that was started or resumed since has not been silent before.
func (c *Client) worked(found providers.Activity, last wireEvent, started, beat moment) providers.Activity {
	found.LastWorkAt = last.CreatedAt.Time
	if started.After(last.CreatedAt.Time) {
		last.CreatedAt = started
	}
	found.Silence = silence(last.CreatedAt, beat)
	found.Evidence = append(found.Evidence, c.eventEvidence("last activity", last.Type, last.CreatedAt.Time))
	return found
}

// checkHistory is fault.KindNotFound for a history without any event, and the error of checkClock.
func (c *Client) checkHistory(id string, w wireTrajectory) error {
	if w.Total == 0 && w.Heartbeats.Count == 0 && len(w.rows) == 0 {
		return c.Fault(fault.KindNotFound, "activity "+id, "it has never reported anything")
	}
	return c.checkClock(id, w.Heartbeats.Last)
}

// maxSkew is how far the backend's clock may be from this machine's for its times to be used.
const maxSkew = 2 * time.Minute

// checkClock is fault.KindUnavailable where the backend's clock, or that of its events, is not this machine's: a
// heartbeat from the future shows that as well.
func (c *Client) checkClock(id string, beat heartbeat) error {
	ahead, known := c.API.Skew()
	if early := beat.Sub(c.Now()); !beat.naive && early > maxSkew && early > ahead {
		ahead, known = early, true
	}
	if !known || ahead.Abs() <= maxSkew {
		return nil
	}
	return c.Fault(fault.KindUnavailable, "activity "+id, "its clock is %s this machine's, so that its times prove no silence", providers.ClockWords(ahead)).
		WithHint("correct the clock of the backend, or this machine's")
}

// silence is the time from the last work to the newest heartbeat; 0 where they are no times of one clock: one
// of them has no zone.
func silence(work, beat moment) time.Duration {
	if beat.IsZero() || work.naive != beat.naive {
		return 0
	}
	return max(0, beat.Sub(work.Time))
}

// readHistory reads a page of the history; "" = the newest.
func (c *Client) readHistory(ctx context.Context, id, cursor string) (wireTrajectory, error) {
	query := url.Values{"limit": {strconv.Itoa(historyPageSize)}}
	if cursor != "" {
		query.Set("cursor", cursor)
		query.Set("direction", "older")
	}
	var w wireTrajectory
	err := c.readJSON(ctx, sandboxRequest("activity", id, "trajectory", query), &w)
	if err == nil {
		err = providers.CheckAnswerID(c.Profile, "activity "+id, id, w.SandboxID)
	}
	if other := w.Heartbeats.Last.sandboxID; err == nil && other != "" {
		err = providers.CheckAnswerID(c.Profile, "activity "+id, id, other)
	}
	if err == nil {
		w.rows, err = w.Events.Rows()
	}
	return w, fault.Placed(err, c.Profile, "activity "+id)
}

// checkNext says that a page is the last one. It is an error where the history goes on, or may do so, and the answer has
// no next page, or one that was read.
func (w wireTrajectory) checkNext(guard *wirekit.PageGuard) (last bool, err error) {
	more := len(w.rows) >= historyPageSize // a full page without a mark
	if w.More != nil {
		more = *w.More
	}
	switch {
	case w.Next == "" && more:
		return false, fault.New(fault.KindUnavailable, "the history goes on, and the answer has no next page")
	case w.Next == "" || w.More != nil && !more:
		return true, nil
	}
	return false, guard.Check(w.Next, len(w.rows))
}

func (c *Client) heartbeats(w wireTrajectory) providers.Activity {
	found := providers.Activity{LastHeartbeatAt: w.Heartbeats.Last.Time}
	if w.Heartbeats.Count > 0 {
		found.Evidence = append(found.Evidence, c.eventEvidence("heartbeats", strconv.FormatInt(w.Heartbeats.Count, 10), w.Heartbeats.Last.Time))
	}
	return found
}

func (c *Client) eventEvidence(what, value string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: c.Profile, At: at}
}

// lastWork finds the newest event of a page that is work, in any order of the page; false where
// a row cannot be read.
func lastWork(w wireTrajectory) (wireEvent, bool) {
	var last wireEvent
	for _, row := range w.rows {
		e, ok := readEvent(row, w.SandboxID)
		if !ok {
			return wireEvent{}, false
		}
		if isWork(e.Type) && e.CreatedAt.After(last.CreatedAt.Time) {
			last = e
		}
	}
	return last, true
}

// setWaiting records that the agent waits for its next message, where that is its newest event.
func (c *Client) setWaiting(found *providers.Activity, newest wireEvent) {
	if newest.Type != "agent.waiting" {
		return
	}
	found.WaitsSince = newest.CreatedAt.Time
	found.Evidence = append(found.Evidence, c.eventEvidence("waits for a message", newest.Type, newest.CreatedAt.Time))
}

// newestEvent is the newest event of a page that is no heartbeat and no start of a worker; zero without one. A worker
// that was resumed reports its start again, and has worked no more than before. Every row can be read.
func newestEvent(w wireTrajectory) wireEvent {
	var last wireEvent
	for _, row := range w.rows {
		e, ok := readEvent(row, w.SandboxID)
		if ok && !strings.HasSuffix(e.Type, ".heartbeat") && e.Type != "agent.started" && e.CreatedAt.After(last.CreatedAt.Time) {
			last = e
		}
	}
	return last
}

// newestStart is the newest start of a worker of a page; zero without one. Every row can be read.
func newestStart(w wireTrajectory) (at moment) {
	for _, row := range w.rows {
		if e, ok := readEvent(row, w.SandboxID); ok && e.Type == "agent.started" && e.CreatedAt.After(at.Time) {
			at = e.CreatedAt
		}
	}
	return at
}

// isWork distinguishes work from heartbeats and failures as OmoiOS does (its list NON_WORK):
// every other event is work.
func isWork(event string) bool {
	if strings.HasPrefix(event, "iteration") && strings.HasSuffix(event, "failed") {
		return false
	}
	return !slices.Contains([]string{
		"agent.heartbeat", "spec.heartbeat", "agent.started", "agent.error", "agent.stream_error",
		"spec.phase_failed", "spec.execution_failed", "agent.waiting", "agent.shutdown", "agent.interrupted",
	}, event)
}
