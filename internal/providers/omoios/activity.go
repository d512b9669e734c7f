package omoios

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

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
	var guard wirekit.PageGuard
	cursor := ""
	for n := range maxHistoryPages {
		w, err := c.readHistory(ctx, id, cursor)
		if err != nil {
			return providers.Activity{}, err
		}
		if n == 0 {
			if w.Total == 0 && w.Heartbeats.Count == 0 && len(w.rows) == 0 {
				return providers.Activity{}, c.Fault(fault.KindNotFound, "activity "+id, "nothing was ever heard of it")
			}
			found = c.heartbeats(w)
		}
		last, ok := lastWork(w)
		if !ok {
			return providers.Activity{}, c.Fault(fault.KindUnavailable, "activity "+id, "an event is not understood")
		}
		if newest.Type == "" {
			newest = newestEvent(w)
			c.setWaiting(&found, newest)
		}
		if last.Type != "" {
			found.LastWorkAt = last.CreatedAt.Time
			found.Evidence = append(found.Evidence, c.eventEvidence("last work", last.Type, last.CreatedAt.Time))
			return found, nil
		}
		if !w.More || w.Next == "" {
			return found, nil
		}
		if err := guard.Check(w.Next, len(w.rows)); err != nil {
			return providers.Activity{}, fault.Placed(err, c.Profile, "activity "+id)
		}
		cursor = w.Next
	}
	return found, nil
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
		w.rows, err = w.Events.Rows()
	}
	return w, fault.Placed(err, c.Profile, "activity "+id)
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
		e, ok := readEvent(row)
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

// newestEvent is the newest event of a page that is no heartbeat; zero without one. Every row
// can be read.
func newestEvent(w wireTrajectory) wireEvent {
	var last wireEvent
	for _, row := range w.rows {
		e, ok := readEvent(row)
		if ok && !strings.HasSuffix(e.Type, ".heartbeat") && e.CreatedAt.After(last.CreatedAt.Time) {
			last = e
		}
	}
	return last
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
