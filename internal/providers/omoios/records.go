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

// tasksMost is how many tasks are asked for: the API's own default. It knows no
// second page.
const tasksMost = 100

// Records lists the tasks that have a sandbox, and the sandboxes that sent a
// heartbeat within two minutes and that no shown task has: a token sees only the
// tasks of its own projects. What is left out is an error at the end, so that
// nobody takes a missing row for a missing record.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		rows, failed := c.tasks(ctx)
		alive, err := c.aliveTasks(ctx, rows)
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

func (c *Client) tasks(ctx context.Context) ([]providers.Record, error) {
	if c.token == "" {
		return nil, fault.New(fault.KindAuth, "without a token only sandboxes that live are known, not those that should").At(c.name, "records").
			WithHint("set OMOIOS_TOKEN, or token_env: in the profile")
	}
	var list httpx.List[wireTask]
	r := httpx.Request{
		Op: "records", Path: "/api/v1/tasks", Header: c.bearer(),
		Query: url.Values{"has_sandbox": {"true"}, "limit": {strconv.Itoa(tasksMost)}},
	}
	if err := c.json(ctx, r, &list); err != nil {
		return nil, err
	}
	rows, err := list.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.name, "records")
	}
	var found []providers.Record
	odd := 0
	for _, w := range rows {
		if w.ID == "" || w.Status == "" {
			odd++
		}
		if w.SandboxID != "" {
			found = append(found, w.record())
		}
	}
	switch {
	case odd > 0:
		return found, fault.New(fault.KindUnavailable, "%d of %d tasks are not understood", odd, len(rows)).At(c.name, "records")
	case len(rows) >= tasksMost:
		return found, fault.New(fault.KindUnavailable, "lists %d tasks and no more, though there may be", len(rows)).At(c.name, "records")
	}
	return found, nil
}

// record reads a task. Its sandbox should live while the task is at work; a
// worker that waits after completion is what is left over.
func (w wireTask) record() providers.Record {
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

// aliveTasks lists the sandboxes that were heard of lately and that no row is about,
// each with the task that it is linked to the provider's sandbox by.
func (c *Client) aliveTasks(ctx context.Context, rows []providers.Record) ([]providers.Record, error) {
	alive, failed := c.alive(ctx)
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

// alive lists the sandboxes that were heard of lately; a dead one is not shown.
func (c *Client) alive(ctx context.Context) ([]providers.Record, error) {
	var w wireStatus
	if err := c.json(ctx, httpx.Request{Op: "records", Path: "/api/v1/sandboxes/monitoring/status"}, &w); err != nil {
		return nil, err
	}
	rows, err := w.Sandboxes.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.name, "records")
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
