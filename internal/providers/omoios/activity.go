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
	"sbx/internal/sandbox"
)

const (
	trajectoryPage = 100
	// trajectoryMost bounds how far back work is looked for, in pages: older work
	// than a thousand other events is not what keeps a sandbox.
	trajectoryMost = 10
)

// Activity tells when a sandbox last worked and when it was last heard of. A
// heartbeat is no work: it comes every 30 s, also in a hung turn and after
// completion. fault.KindNotFound where nothing was ever heard of the sandbox;
// fault.KindUnavailable where a row is not understood, for it may be the last work.
func (c *Client) Activity(ctx context.Context, id string) (providers.Activity, error) {
	var found providers.Activity
	var newest wireEvent // beside heartbeats
	seen := map[string]bool{}
	cursor := ""
	for n := range trajectoryMost {
		w, err := c.trajectory(ctx, id, cursor)
		if err != nil {
			return providers.Activity{}, err
		}
		if n == 0 {
			if w.Total == 0 && w.Heartbeats.Count == 0 && len(w.rows) == 0 {
				return providers.Activity{}, fault.New(fault.KindNotFound, "nothing was ever heard of it").At(c.name, "activity "+id)
			}
			found = c.heard(w)
		}
		last, ok := lastWork(w)
		if !ok {
			return providers.Activity{}, fault.New(fault.KindUnavailable, "an event is not understood").At(c.name, "activity "+id)
		}
		if newest.Type == "" {
			newest = newestReport(w)
			c.noteWaiting(&found, newest)
		}
		if last.Type != "" {
			found.LastWorkAt = last.CreatedAt.Time
			found.Evidence = append(found.Evidence, c.fact("last work", last.Type, last.CreatedAt.Time))
			return found, nil
		}
		if !w.More || w.Next == "" {
			return found, nil
		}
		if seen[w.Next] {
			return providers.Activity{}, fault.New(fault.KindUnavailable, "the listing loops").At(c.name, "activity "+id)
		}
		seen[w.Next], cursor = true, w.Next
	}
	return found, nil
}

// trajectory reads a page of the history; "" = the newest.
func (c *Client) trajectory(ctx context.Context, id, cursor string) (wireTrajectory, error) {
	query := url.Values{"limit": {strconv.Itoa(trajectoryPage)}}
	if cursor != "" {
		query.Set("cursor", cursor)
		query.Set("direction", "older")
	}
	var w wireTrajectory
	err := c.json(ctx, below("activity", id, "trajectory", query), &w)
	if err == nil {
		w.rows, err = w.Events.Rows()
	}
	return w, fault.Placed(err, c.name, "activity "+id)
}

// heard is what the heartbeats tell.
func (c *Client) heard(w wireTrajectory) providers.Activity {
	found := providers.Activity{LastHeartbeatAt: w.Heartbeats.Last.Time}
	if w.Heartbeats.Count > 0 {
		found.Evidence = append(found.Evidence, c.fact("heartbeats", strconv.FormatInt(w.Heartbeats.Count, 10), w.Heartbeats.Last.Time))
	}
	return found
}

func (c *Client) fact(what, value string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: c.name, At: at}
}

// lastWork finds the newest event of a page that is work, whatever the page's
// order; false where a row is not understood.
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

// noteWaiting notes that the agent waits for its next message, where that is its newest
// report.
func (c *Client) noteWaiting(found *providers.Activity, newest wireEvent) {
	if newest.Type != "agent.waiting" {
		return
	}
	found.WaitsSince = newest.CreatedAt.Time
	found.Evidence = append(found.Evidence, c.fact("waits for a message", newest.Type, newest.CreatedAt.Time))
}

// newestReport is the newest event of a page that is no heartbeat; the zero value
// without one. The rows have been read before.
func newestReport(w wireTrajectory) wireEvent {
	var last wireEvent
	for _, row := range w.rows {
		e, ok := readEvent(row)
		if ok && !strings.HasSuffix(e.Type, ".heartbeat") && e.CreatedAt.After(last.CreatedAt.Time) {
			last = e
		}
	}
	return last
}

// isWork tells work from life signs and failures, as OmoiOS itself does (its list
// NON_WORK): all that is not one of these is work.
func isWork(event string) bool {
	if strings.HasPrefix(event, "iteration") && strings.HasSuffix(event, "failed") {
		return false
	}
	return !slices.Contains([]string{
		"agent.heartbeat", "spec.heartbeat", "agent.started", "agent.error", "agent.stream_error",
		"spec.phase_failed", "spec.execution_failed", "agent.waiting", "agent.shutdown", "agent.interrupted",
	}, event)
}
