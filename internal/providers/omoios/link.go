package omoios

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// OmoiOS and Daytona share no ids. OmoiOS's spawner calls its sandbox
// omoios-<first 8 of the task's id>-<6 hex digits>, creates it at Daytona without a
// name, and puts the task's id into a label there (OmoiOS, Daytona spawner).
const (
	idPrefix  = "omoios-"
	labelTask = "task_id"
	prefixLen = 8 // characters of a task's id in the id of its sandbox
)

// linkCacheTime is how long the lists are used for links: one view of a fleet links each of its
// sandboxes.
const linkCacheTime = 10 * time.Second

type linkCache struct {
	reading chan struct{}     // a lock that can be awaited with a context
	at      time.Time         // of the last read
	byTask  map[string]string // a task's id -> its sandbox, by the list of tasks
	alive   []string          // sandboxes that sent a heartbeat within 2 min
	err     error             // why one of the two lists could not be read
}

var _ providers.Linker = (*Client)(nil)

// Link finds OmoiOS's id of a sandbox at Daytona by its name, or by the task in its label.
// fault.KindNotFound where it has neither; fault.KindUnavailable where the lists do not have the
// task's sandbox, so that its activity is not known.
func (c *Client) Link(ctx context.Context, s sandbox.Sandbox) (string, error) {
	for _, own := range []string{s.Name, s.ID} {
		if strings.HasPrefix(own, idPrefix) {
			return own, nil
		}
	}
	task := s.Labels[labelTask]
	if task == "" {
		return "", c.Fault(fault.KindNotFound, "link "+s.ID, "it has no label %s, so it is not a sandbox of OmoiOS", labelTask)
	}
	byTask, alive, failed := c.readLinks(ctx)
	if id := byTask[task]; id != "" {
		if other := otherSandboxOf(task, id, alive); other != "" {
			return "", c.Fault(fault.KindUnavailable, "link "+s.ID, "the task %q has recorded %s, but %s sends heartbeats", task, id, other)
		}
		return id, nil
	}
	id, err := c.findAlive(ctx, task, alive)
	if id != "" || err != nil {
		return id, err
	}
	if failed != nil {
		return "", failed
	}
	return "", c.Fault(fault.KindUnavailable, "link "+s.ID, "the task %q of its label %s is not shown, so its activity is unknown", task, labelTask).
		WithHint("a token shows only the tasks of its own projects; without one only sandboxes with a heartbeat are shown")
}

// otherSandboxOf is another sandbox of the task that sends heartbeats: after a retry two have
// its label, and they cannot be told apart.
func otherSandboxOf(task, id string, alive []string) string {
	for _, other := range alive {
		if other != id && hasTaskPrefix(other, task) {
			return other
		}
	}
	return ""
}

// hasTaskPrefix says that the id of a sandbox has the first characters of a task's id.
func hasTaskPrefix(id, task string) bool {
	return len(task) >= prefixLen && strings.HasPrefix(id, idPrefix+task[:prefixLen]+"-")
}

// readLinks returns the lists, read again when they are old, and the error of a list that is
// incomplete.
func (c *Client) readLinks(ctx context.Context) (byTask map[string]string, alive []string, failed error) {
	l := &c.links
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, nil, wirekit.ContextFault(ctx)
	}
	if !l.at.IsZero() && time.Since(l.at) < linkCacheTime {
		return l.byTask, l.alive, l.err
	}
	l.byTask, l.alive, l.err = map[string]string{}, nil, nil
	if c.token != "" {
		var rows []providers.Record
		rows, l.err = c.readTasks(ctx)
		for _, r := range rows {
			l.byTask[r.TaskID] = r.SandboxID
		}
	}
	rows, err := c.readAlive(ctx)
	for _, r := range rows {
		l.alive = append(l.alive, r.SandboxID)
	}
	if l.err == nil {
		l.err = err
	}
	if l.at = time.Now(); ctx.Err() != nil {
		l.at = time.Time{} // the caller gave up, which is no state of the lists
	}
	return l.byTask, l.alive, l.err
}

// findAlive finds the sandbox of a task among those that sent a heartbeat, by the part of the
// task's id in theirs, and confirms it. "" = none; two are an error.
func (c *Client) findAlive(ctx context.Context, task string, alive []string) (string, error) {
	found := ""
	for _, id := range alive {
		if !hasTaskPrefix(id, task) {
			continue
		}
		switch of, err := c.taskOf(ctx, id); {
		case err != nil:
			return "", err
		case of != task:
		case found != "":
			return "", c.Fault(fault.KindUnavailable, "link", "the task %q has two sandboxes that send heartbeats", task)
		default:
			found = id
		}
	}
	return found, nil
}

// taskOf is the id of the task of a sandbox; "" = it has none.
func (c *Client) taskOf(ctx context.Context, id string) (string, error) {
	var w wireTask
	_, err := c.API.JSON(ctx, sandboxRequest("task", id, "task", nil), &w)
	switch {
	case httpx.AnsweredMissing(err):
		return "", nil
	case err == nil && w.ID == "":
		err = c.Fault(fault.KindUnavailable, "task "+id, "the task of a sandbox has no id")
	case err == nil:
		err = providers.CheckAnswerID(c.Profile, "task "+id, id, w.SandboxID)
	}
	return w.ID, err
}

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
		return nil, c.Fault(fault.KindAuth, "records", "without a token only running sandboxes are known, not those that should run").
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
	rows, refused := list.Rows()
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
	case refused != nil:
		return found, fault.Placed(refused, c.Profile, "records")
	case invalid > 0:
		return found, c.Fault(fault.KindUnavailable, "records", "%d of %d tasks are invalid", invalid, len(rows))
	case len(rows) >= maxTasks:
		return found, c.Fault(fault.KindUnavailable, "records", "lists %d tasks, and there may be more", len(rows))
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
	rows, refused := w.Sandboxes.Named(func(s wireAlive) string { return s.ID })
	var found []providers.Record
	for _, s := range rows {
		r := providers.Record{SandboxID: s.ID, Live: sandbox.Unknown}
		if s.Activity != nil {
			r.RawState, r.UpdatedAt = s.Activity.Status, s.Activity.LastBeatAt.Time
			if s.Activity.Alive {
				r.Live = sandbox.True
			}
		}
		found = append(found, r)
	}
	return found, fault.Placed(refused, c.Profile, "records")
}
