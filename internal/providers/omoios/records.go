package omoios

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strconv"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// maxTasks is how many tasks are requested: the API's default. It has no second page.
const maxTasks = 100

// Records lists the tasks that have a sandbox, and the sandboxes that sent a heartbeat within
// two minutes and that no listed task has: a token sees only the tasks of its own projects. An
// incomplete list is an error at the end, so that a missing row is not taken for a missing
// record.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		rows, failed := c.readTasks(ctx)
		alive, err := c.aliveWithoutTask(ctx, rows)
		for _, r := range append(rows, alive...) {
			if !yield(r, nil) {
				return
			}
		}
		for _, err := range []error{failed, err} {
			if err != nil && !yield(providers.Record{}, err) {
				return
			}
		}
	}
}

func (c *Client) readTasks(ctx context.Context) ([]providers.Record, error) {
	if c.token == "" {
		return nil, c.Fault(fault.KindAuth, "records", "without a token only sandboxes that live are known, not those that should").
			WithHint("set OMOIOS_TOKEN, or token_env: in the profile")
	}
	var list httpx.List[wireTask]
	r := httpx.Request{
		Op: "records", Path: "/api/v1/tasks", Header: c.authorization(),
		Query: url.Values{"has_sandbox": {"true"}, "limit": {strconv.Itoa(maxTasks)}},
	}
	if err := c.readJSON(ctx, r, &list); err != nil {
		return nil, err
	}
	rows, err := list.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.Profile, "records")
	}
	var found []providers.Record
	invalid := 0
	for _, w := range rows {
		if w.ID == "" || w.Status == "" {
			invalid++
		}
		if w.SandboxID != "" {
			found = append(found, w.toRecord())
		}
	}
	switch {
	case invalid > 0:
		return found, c.Fault(fault.KindUnavailable, "records", "%d of %d tasks are not understood", invalid, len(rows))
	case len(rows) >= maxTasks:
		return found, c.Fault(fault.KindUnavailable, "records", "lists %d tasks and no more, though there may be", len(rows))
	}
	return found, nil
}

// toRecord converts a task. Its sandbox should live while the task works; one that waits after
// completion is a leftover.
func (w wireTask) toRecord() providers.Record {
	live := sandbox.Unknown
	switch w.Status {
	case "claiming", "assigned", "running":
		live = sandbox.True
	case "completed", "failed":
		live = sandbox.False
	}
	return providers.Record{
		SandboxID: w.SandboxID, Labels: map[string]string{labelTask: w.ID}, TaskID: w.ID, RawState: w.Status, Live: live,
		CreatedAt: w.CreatedAt.Time, UpdatedAt: w.UpdatedAt.Time, EndedAt: w.CompletedAt.Time,
	}
}

// aliveWithoutTask lists the sandboxes with a recent heartbeat that are not in rows, each with
// the label of its task, by which it is linked to the provider's sandbox.
func (c *Client) aliveWithoutTask(ctx context.Context, rows []providers.Record) ([]providers.Record, error) {
	alive, failed := c.readAlive(ctx)
	var found []providers.Record
	for _, r := range alive {
		if slices.ContainsFunc(rows, func(o providers.Record) bool { return o.SandboxID == r.SandboxID }) {
			continue
		}
		task, err := c.taskOf(ctx, r.SandboxID)
		if err != nil && failed == nil {
			failed = err
		}
		if task != "" {
			r.Labels = map[string]string{labelTask: task}
		}
		found = append(found, r)
	}
	return found, failed
}

// readAlive lists the sandboxes with a recent heartbeat; the API does not list others.
func (c *Client) readAlive(ctx context.Context) ([]providers.Record, error) {
	var w wireStatus
	if err := c.readJSON(ctx, httpx.Request{Op: "records", Path: "/api/v1/sandboxes/monitoring/status"}, &w); err != nil {
		return nil, err
	}
	rows, err := w.Sandboxes.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.Profile, "records")
	}
	var found []providers.Record
	for _, s := range rows {
		if s.ID == "" {
			continue
		}
		r := providers.Record{SandboxID: s.ID, Live: sandbox.Unknown}
		if s.Activity != nil {
			r.RawState, r.UpdatedAt = s.Activity.Status, s.Activity.LastBeatAt.Time
			if s.Activity.Alive {
				r.Live = sandbox.True
			}
		}
		found = append(found, r)
	}
	return found, nil
}
