// Package omoios reads what OmoiOS knows about its sandboxes at Daytona: their events, the last
// work of their agents, and their tasks. It is a source beside a provider: it neither lists nor
// ends sandboxes, and OmoiOS has no call for that.
//
// Two properties of that API shape the package. An empty list of events may be a failure of the
// database, so it is confirmed by another call, which fails then. And a read of a sandbox's
// messages removes them from its queue, so that call is never made.
package omoios

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// TypeName is the source type's name.
const TypeName = "omoios"

// Client is one OmoiOS backend.
type Client struct {
	wirekit.Base

	token string // "" = tasks cannot be read
	links linkCache
}

var (
	_ providers.Source           = (*Client)(nil)
	_ providers.EventReader      = (*Client)(nil)
	_ providers.AgentEventReader = (*Client)(nil)
	_ providers.ActivityReader   = (*Client)(nil)
	_ providers.Recorder         = (*Client)(nil)
	_ providers.Checker          = (*Client)(nil)
)

// Type describes OmoiOS.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "OmoiOS: events, activity and tasks of sandboxes at Daytona",
		LifeSigns: []providers.LifeSign{
			{
				Ability: "activity", Shows: "the agent's last reported work; a heartbeat does not count",
				Misses: "a long tool call reports nothing until it ends: 15 minutes without a report count as silence. A sandbox is found by its label task_id or its name; otherwise its activity is unknown",
			},
			{Ability: "events", Shows: "the same, each with its time", Misses: "as activity"},
		},
		Options: []providers.Option{
			{Name: "url", Env: "OMOIOS_URL", Kind: providers.OptionText, Help: "address of the backend"},
			{
				Name: "token", Env: "OMOIOS_TOKEN", Kind: providers.OptionText, Secret: true,
				Help: "a user's token; sent only to the list of tasks and the WebSocket of events",
			},
			{Name: providers.OptionAttach, Default: "daytona", Kind: providers.OptionText, Account: true, Help: "profile whose sandboxes it reports on"},
		},
		Attach: attach,
	}
}

func attach(_ context.Context, p providers.Profile, d providers.Deps) (providers.Source, error) { //nolint:ireturn // as Type.Attach wants it
	token := p.Settings["token"]
	if p.Settings["url"] == "" {
		return nil, fault.Usage("no url is set").At(p.Name, "").WithHint("set url: in the profile, like http://127.0.0.1:8000")
	}
	base, err := wirekit.NewBase(p, d, TypeName, httpx.Options{Base: p.Settings["url"], Secrets: []string{token}})
	if err != nil {
		return nil, err
	}
	return &Client{Base: base, links: linkCache{reading: make(chan struct{}, 1)}, token: token}, nil
}

// sandboxRequest is a request for a part of one sandbox. These routes need no credentials and
// get none.
func sandboxRequest(op, id, part string, query url.Values) httpx.Request {
	return httpx.Request{Op: op + " " + id, Path: "/api/v1/sandboxes" + httpx.Path(id, part), Query: query}
}

// readJSON decodes an answer. No route here answers 404 or 410 for an unknown sandbox, so either
// means that the address is not that of a backend.
func (c *Client) readJSON(ctx context.Context, r httpx.Request, out any) error {
	_, err := c.API.JSON(ctx, r, out)
	return c.ListFault(err, r.Op, "check the url: requests go to "+c.API.Base())
}

func (c *Client) authorization() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.token}}
}

// unknownID is an id that no sandbox has; a read of it shows whether the database works.
const unknownID = "sbx-doctor-asks-for-nobody"

// Check checks the backend, its database, which the backend's own health does not include, and
// the token.
func (c *Client) Check(ctx context.Context) []providers.Check {
	return []providers.Check{c.checkHealth(ctx), c.checkDatabase(ctx), c.checkToken(ctx), providers.CheckClock(c.API)}
}

func (c *Client) checkHealth(ctx context.Context) providers.Check {
	var w struct {
		Status string `json:"status"`
	}
	err := c.readJSON(ctx, httpx.Request{Op: "doctor", Path: "/api/v1/sandboxes/health"}, &w)
	switch {
	case err != nil:
		return failedCheck("api", err)
	case w.Status != "ok":
		return providers.Check{Check: "api", Verdict: sandbox.Unknown, Message: "calls itself " + strings.ToValidUTF8(w.Status, "?")}
	}
	return providers.Check{Check: "api", Verdict: sandbox.True, Message: "answers"}
}

func (c *Client) checkDatabase(ctx context.Context) providers.Check {
	if _, err := c.readHistory(ctx, unknownID, ""); err != nil {
		found := failedCheck("events", err)
		found.Hint = "while its database fails, OmoiOS answers that no sandbox has events; that is not silence"
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
	if err := c.readJSON(ctx, httpx.Request{Op: "doctor", Path: "/api/v1/tasks", Header: c.authorization(), Query: url.Values{"limit": {"1"}}}, &list); err != nil {
		return failedCheck("tasks", err)
	}
	rows, err := list.Rows()
	if err != nil {
		return failedCheck("tasks", err)
	}
	if len(rows) == 0 {
		return providers.Check{Check: "tasks", Verdict: sandbox.Unknown, Info: true, Message: "none are shown; a user sees only those of their own projects"}
	}
	return providers.Check{Check: "tasks", Verdict: sandbox.True, Message: "can be read"}
}

// failedCheck is the finding of an error; an interrupted check has no result.
func failedCheck(check string, err error) providers.Check {
	found := wirekit.FailedCheck(check, err)
	if fault.Interrupted(err) {
		found.Verdict = sandbox.Unknown
	}
	return found
}
