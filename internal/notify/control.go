package notify

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// Control reports the progress of tasks to a control plane; a nil one does nothing. It is safe
// for concurrent use.
type Control struct {
	line    *line
	address string
}

// NewControl makes the way to a control plane's callback address, which may be a
// secret; one that is no http or https address is fault.KindUsage.
func NewControl(n httpx.Net, address string) (*Control, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // no address is no fault
	}
	n.Timeout = Limit
	l, err := newLine(n, "callback", address, address)
	if err != nil {
		return nil, withCallbackHint(err)
	}
	return &Control{l, address}, nil
}

// TakesEvents says that the address is that of OmoiOS for the events of a sandbox, which have a form of their own.
func (c *Control) TakesEvents() bool {
	if c == nil {
		return false
	}
	u, err := url.Parse(c.address)
	return err == nil && strings.HasSuffix(u.Path, "/events") && strings.Contains(u.Path, "/sandboxes/")
}

// Ended reports how a task ended, within Limit, and repeats a request without an answer: key
// makes repetitions idempotent. An error changes nothing about how the task ended.
func (c *Control) Ended(ctx context.Context, key string, report any) error {
	if c == nil {
		return nil
	}
	ctx, stop := withLimit(ctx)
	defer stop()
	return withCallbackHint(c.line.send(ctx, httpx.Request{
		URL: c.address, JSON: report, Again: true, Header: map[string][]string{"Idempotency-Key": {key}},
	}))
}

// Beat says that something goes on, once. What a proxy answers while its service
// starts anew (502, 503, 504) is no error: the next beat says the same.
func (c *Control) Beat(ctx context.Context, beat any) error {
	if c == nil {
		return nil
	}
	err := c.line.send(ctx, httpx.Request{URL: c.address, JSON: beat, Once: true, Timeout: attempt})
	switch httpx.Status(err) {
	case 502, 503, 504:
		return nil
	}
	return withCallbackHint(err)
}

// Close lets idle connections go.
func (c *Control) Close() {
	if c != nil {
		c.line.client.Close()
	}
}

// withCallbackHint puts a hint about the callback in place of those about notifications.
func withCallbackHint(err error) error {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	own := *known
	own.Hint = "only the report to the control plane is missing; check run.callback_url and CALLBACK_URL in `sbx config explain`"
	return &own
}
