package omoios

import (
	"context"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// OmoiOS and Daytona share no ids. OmoiOS's spawner calls its sandbox
// omoios-<first 8 of the task's id>-<6 hex digits>, creates it at Daytona without a
// name, and puts the task's id into a label there (OmoiOS, Daytona spawner).
const (
	idPrefix  = "omoios-"
	labelTask = "task_id"
	shownOf   = 8 // characters of a task's id in the id of its sandbox
)

// linksAge is how long a reading of tasks serves for links: one look at a fleet asks
// about each of its sandboxes.
const linksAge = 10 * time.Second

// links is what both sides of the links were when they were last read.
type links struct {
	turn   chan struct{} // held by the one that reads; it is waited for within a context
	at     time.Time
	byTask map[string]string // a task's id -> its sandbox, as the list of tasks has it
	alive  []string          // sandboxes that sent a heartbeat within 2 min
	err    error             // why one of the two lists could not be read
}

var _ providers.Linker = (*Client)(nil)

// Link finds OmoiOS's id of a sandbox at Daytona: by its name, or by the task that
// its label names. fault.KindNotFound where it has neither; fault.KindUnavailable
// where the task's sandbox is not shown, so that nothing can be concluded.
func (c *Client) Link(ctx context.Context, s sandbox.Sandbox) (string, error) {
	for _, own := range []string{s.Name, s.ID} {
		if strings.HasPrefix(own, idPrefix) {
			return own, nil
		}
	}
	task := s.Labels[labelTask]
	if task == "" {
		return "", fault.New(fault.KindNotFound, "it has no label %s, so it is no sandbox of OmoiOS", labelTask).At(c.name, "link "+s.ID)
	}
	byTask, alive, failed := c.readLinks(ctx)
	if id := byTask[task]; id != "" {
		if other := second(task, id, alive); other != "" {
			return "", fault.New(fault.KindUnavailable, "the task %q has %s on record, and %s sends heartbeats", task, id, other).At(c.name, "link "+s.ID)
		}
		return id, nil
	}
	id, err := c.aliveOf(ctx, task, alive)
	if id != "" || err != nil {
		return id, err
	}
	if failed != nil {
		return "", failed
	}
	return "", fault.New(fault.KindUnavailable, "the task %q of its label %s is not among those shown, so its activity is not known", task, labelTask).At(c.name, "link "+s.ID).
		WithHint("a token shows only the tasks of its own projects, and without one only sandboxes with a heartbeat are shown")
}

// second is another sandbox of the task that sends heartbeats: after a retry two carry
// its label, and nothing tells which is which.
func second(task, id string, alive []string) string {
	for _, other := range alive {
		if other != id && showsTask(other, task) {
			return other
		}
	}
	return ""
}

// showsTask says that the id of a sandbox holds the part of a task's id that it shows.
func showsTask(id, task string) bool {
	return len(task) >= shownOf && strings.HasPrefix(id, idPrefix+task[:shownOf]+"-")
}

// readLinks gives the lists, read again when they are old, with why one of them could
// not be read whole.
func (c *Client) readLinks(ctx context.Context) (byTask map[string]string, alive []string, failed error) {
	l := &c.links
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, nil, &fault.Error{Kind: fault.KindOf(ctx.Err()), Err: context.Cause(ctx)}
	}
	if !l.at.IsZero() && time.Since(l.at) < linksAge {
		return l.byTask, l.alive, l.err
	}
	l.byTask, l.alive, l.err = map[string]string{}, nil, nil
	if c.token != "" {
		var rows []providers.Record
		rows, l.err = c.tasks(ctx)
		for _, r := range rows {
			l.byTask[r.TaskID] = r.SandboxID
		}
	}
	beating, err := c.alive(ctx)
	for _, r := range beating {
		l.alive = append(l.alive, r.SandboxID)
	}
	if l.err == nil {
		l.err = err
	}
	if l.at = time.Now(); ctx.Err() != nil {
		l.at = time.Time{} // the caller gave up: that says nothing about the lists
	}
	return l.byTask, l.alive, l.err
}

// aliveOf finds the sandbox of a task among those that sent a heartbeat, by the part
// of the task's id that is in theirs, and confirms it. "" = none; two are an error.
func (c *Client) aliveOf(ctx context.Context, task string, alive []string) (string, error) {
	found := ""
	for _, id := range alive {
		if !showsTask(id, task) {
			continue
		}
		switch of, err := c.taskOf(ctx, id); {
		case err != nil:
			return "", err
		case of != task:
		case found != "":
			return "", fault.New(fault.KindUnavailable, "the task %q has two sandboxes that send heartbeats", task).At(c.name, "link")
		default:
			found = id
		}
	}
	return found, nil
}

// taskOf gives the id of the task that has a sandbox; "" = none has.
func (c *Client) taskOf(ctx context.Context, id string) (string, error) {
	var w wireTask
	_, err := c.http.JSON(ctx, below("task", id, "task", nil), &w)
	switch {
	case httpx.Status(err) == http.StatusNotFound:
		return "", nil
	case err == nil && w.ID == "":
		err = fault.New(fault.KindUnavailable, "the task of a sandbox has no id").At(c.name, "task "+id)
	}
	return w.ID, err
}
