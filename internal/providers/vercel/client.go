package vercel

import (
	"context"
	"net/url"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// Client is one project of one team.
type Client struct {
	name    string
	team    string
	project string
	runtime string
	expires time.Time // of an OIDC token; zero = it does not tell
	now     func() time.Time
	http    *httpx.Client
	names   *sessionNames
	notice  func(text string)
	altered sync.Once // the notice that output may have been altered
}

var (
	_ providers.Provider      = (*Client)(nil)
	_ providers.LogReader     = (*Client)(nil)
	_ providers.ProcessLister = (*Client)(nil)
	_ providers.UsageReader   = (*Client)(nil)
	_ providers.Launcher      = (*Client)(nil)
	_ providers.Commander     = (*Client)(nil)
	_ providers.Prober        = (*Client)(nil)
	_ providers.EventReader   = (*Client)(nil)
	_ providers.ExitReader    = (*Client)(nil)
	_ providers.Verifier      = (*Client)(nil)
	_ providers.Checker       = (*Client)(nil)
	_ providers.Clock         = (*Client)(nil)
	_ providers.Explainer     = (*Client)(nil)
)

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "vercel".
func (c *Client) Type() string { return TypeName }

// Close lets idle connections go.
func (c *Client) Close() { c.http.Close() }

// WhyNot says why an ability is missing.
func (c *Client) WhyNot(ability string) string {
	switch ability {
	case "stats":
		return "the API counts nothing"
	case "quota":
		return "the API tells no limits"
	case "activity":
		return "the API tells no last activity"
	case "records":
		return "the provider's own list is all there is"
	case "sweep":
		return "nothing of it runs on this machine"
	}
	return ""
}

// scoped is a query with the team, which every call takes.
func (c *Client) scoped(pairs ...string) url.Values {
	q := url.Values{"teamId": {c.team}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// get reads one object of the API.
func (c *Client) get(ctx context.Context, op, path string, out any) error {
	_, err := c.http.JSON(ctx, httpx.Request{Op: op, Path: path, Query: c.scoped()}, out)
	return err
}

// session is the path of a session, and of what is below it.
func session(id string, more ...string) string {
	return httpx.Path(append([]string{"v2", "sandboxes", "sessions", id}, more...)...)
}

// codeOf is the API's word for a failure: sandbox_stopped, snapshot_not_found.
func codeOf(err error) string {
	if s := httpx.StatusOf(err); s != nil {
		return s.Code
	}
	return ""
}

// moving says that a session is between two states, by its codes of 422.
func moving(err error) bool {
	code := codeOf(err)
	return code == "sandbox_stopping" || code == "sandbox_snapshotting"
}

// missing says that there is nothing any more, or never was.
func missing(err error) bool {
	kind := fault.KindOf(err)
	return kind == fault.KindNotFound || kind == fault.KindGone
}
