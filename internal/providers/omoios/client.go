package omoios

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// TypeName is the source type's name.
const TypeName = "omoios"

// Client is one OmoiOS backend.
type Client struct {
	name  string
	now   func() time.Time
	http  *httpx.Client
	token string // "" = tasks cannot be asked for
	links links
}

var (
	_ providers.Source         = (*Client)(nil)
	_ providers.EventReader    = (*Client)(nil)
	_ providers.ActivityReader = (*Client)(nil)
	_ providers.Recorder       = (*Client)(nil)
	_ providers.Checker        = (*Client)(nil)
)

// Type describes OmoiOS.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "OmoiOS: events, activity and tasks of sandboxes at Daytona",
		LifeSigns: []providers.LifeSign{
			{Ability: "activity", Shows: "the last work that the agent reported; a heartbeat is no work", Misses: "a tool call that runs for long reports nothing until it ends: 15 minutes without a report count as silence. A sandbox is found by its label task_id or its name; where that fails, nothing is known"},
			{Ability: "events", Shows: "the same, each with its time", Misses: "as activity"},
		},
		Options: []providers.Option{
			{Name: "url", Env: "OMOIOS_URL", Kind: providers.OptionText, Help: "address of the backend"},
			{Name: "token", Env: "OMOIOS_TOKEN", Kind: providers.OptionText, Secret: true, Help: "a user's token; the list of tasks needs it, nothing else gets it"},
			{Name: providers.OptionAttach, Default: "daytona", Kind: providers.OptionText, Account: true, Help: "profile whose sandboxes it knows"},
		},
		Attach: attach,
	}
}

func attach(_ context.Context, p providers.Profile, d providers.Deps) (providers.Source, error) { //nolint:ireturn // as Type.Attach wants it
	token := p.Settings["token"]
	if p.Settings["url"] == "" {
		return nil, fault.Usage("no url is set").At(p.Name, "").WithHint("set url: in the profile, like http://127.0.0.1:8000")
	}
	c, err := httpx.New(d.Net, httpx.Options{Profile: p.Name, Base: p.Settings["url"], Secrets: []string{token}})
	if err != nil {
		return nil, err
	}
	return &Client{links: links{turn: make(chan struct{}, 1)}, name: p.Name, now: d.Now, http: c, token: token}, nil
}

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "omoios".
func (c *Client) Type() string { return TypeName }

// Close lets idle connections go.
func (c *Client) Close() { c.http.Close() }

// below asks for a part of what is known of one sandbox. The routes need no
// credentials and get none.
func below(op, id, part string, query url.Values) httpx.Request {
	return httpx.Request{Op: op + " " + id, Path: "/api/v1/sandboxes" + httpx.Path(id, part), Query: query}
}

// json asks and decodes. No route here answers 404 or 410 about a sandbox that is
// not known, so either means that the address is not that of a backend.
func (c *Client) json(ctx context.Context, r httpx.Request, out any) error {
	_, err := c.http.JSON(ctx, r, out)
	if kind := fault.KindOf(err); kind == fault.KindNotFound || kind == fault.KindGone {
		return fault.New(fault.KindUnavailable, "%w", err).At(c.name, r.Op).WithHint("is the url right? requests go to %s", c.http.Base())
	}
	return err
}

// bearer carries the user's token, for the list of tasks alone.
func (c *Client) bearer() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.token}}
}
