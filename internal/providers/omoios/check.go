package omoios

import (
	"context"
	"net/url"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// nobody is an id that no sandbox has; asking for it shows whether the database
// answers.
const nobody = "sbx-doctor-asks-for-nobody"

// Check asks three things: whether a backend is there, whether its database
// answers, which its own health does not tell, and whether the token is taken.
func (c *Client) Check(ctx context.Context) []providers.Check {
	return []providers.Check{c.checkHealth(ctx), c.checkStore(ctx), c.checkToken(ctx), providers.CheckClock(c.http)}
}

func (c *Client) checkHealth(ctx context.Context) providers.Check {
	var w struct {
		Status string `json:"status"`
	}
	err := c.json(ctx, httpx.Request{Op: "doctor", Path: "/api/v1/sandboxes/health"}, &w)
	switch {
	case err != nil:
		return failed("api", err)
	case w.Status != "ok":
		return providers.Check{Check: "api", Verdict: sandbox.Unknown, Message: "calls itself " + strings.ToValidUTF8(w.Status, "?")}
	}
	return providers.Check{Check: "api", Verdict: sandbox.True, Message: "answers"}
}

func (c *Client) checkStore(ctx context.Context) providers.Check {
	if _, err := c.trajectory(ctx, nobody, ""); err != nil {
		found := failed("events", err)
		found.Hint = "while its database fails, OmoiOS answers that no sandbox has events; do not take that for silence"
		return found
	}
	return providers.Check{Check: "events", Verdict: sandbox.True, Message: "can be read"}
}

func (c *Client) checkToken(ctx context.Context) providers.Check {
	if c.token == "" {
		return providers.Check{
			Check: "tasks", Verdict: sandbox.Unknown, Info: true, Message: "cannot be read without a token",
			Hint: "set OMOIOS_TOKEN, or token_env: in the profile",
		}
	}
	var list httpx.List[wireTask]
	if err := c.json(ctx, httpx.Request{Op: "doctor", Path: "/api/v1/tasks", Header: c.bearer(), Query: url.Values{"limit": {"1"}}}, &list); err != nil {
		return failed("tasks", err)
	}
	rows, err := list.Rows()
	if err != nil {
		return failed("tasks", err)
	}
	if len(rows) == 0 {
		return providers.Check{Check: "tasks", Verdict: sandbox.Unknown, Info: true, Message: "none are shown; a user sees only those of own projects"}
	}
	return providers.Check{Check: "tasks", Verdict: sandbox.True, Message: "can be read"}
}

// failed is a finding that something does not work; one that was interrupted
// finds nothing.
func failed(check string, err error) providers.Check {
	verdict := sandbox.False
	if fault.Interrupted(err) {
		verdict = sandbox.Unknown
	}
	return providers.Check{Check: check, Verdict: verdict, Message: err.Error(), Hint: fault.HintOf(err)}
}
