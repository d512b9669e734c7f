package vercel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// TypeName is the provider type's name.
const TypeName = "vercel"

// Client is one project of one team.
type Client struct {
	name    string
	team    string
	project string
	now     func() time.Time
	http    *httpx.Client
}

var (
	_ providers.Provider    = (*Client)(nil)
	_ providers.LogReader   = (*Client)(nil)
	_ providers.UsageReader = (*Client)(nil)
	_ providers.Launcher    = (*Client)(nil)
	_ providers.Commander   = (*Client)(nil)
	_ providers.Prober      = (*Client)(nil)
	_ providers.EventReader = (*Client)(nil)
	_ providers.ExitReader  = (*Client)(nil)
	_ providers.Checker     = (*Client)(nil)
	_ providers.Explainer   = (*Client)(nil)
)

// Type describes Vercel Sandbox.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Vercel Sandbox: named sandboxes, each run of which is a session",
		SwitchedOn: []string{"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"},
		Options: []providers.Option{
			{Name: "token", Env: "VERCEL_TOKEN", Kind: providers.OptionText, Secret: true, Help: "access token, or an OIDC token that names team and project itself"},
			{Name: "team", Env: "VERCEL_TEAM_ID", Kind: providers.OptionText, Account: true, Help: "team id"},
			{Name: "project", Env: "VERCEL_PROJECT_ID", Kind: providers.OptionText, Account: true, Help: "project id"},
			{Name: "url", Env: "SBX_VERCEL_URL", Default: "https://vercel.com/api", Kind: providers.OptionText, Help: "address of the API"},
			{Name: "runtime", Default: "node24", Kind: providers.OptionText, Help: "runtime of a sandbox that names no image or snapshot"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	s := p.Settings
	c := &Client{name: p.Name, now: d.Now, team: s["team"], project: s["project"]}
	if team, project := claims(s["token"]); c.team == "" || c.project == "" {
		c.team, c.project = either(c.team, team), either(c.project, project)
	}
	switch {
	case s["token"] == "":
		return nil, fault.New(fault.KindAuth, "no token is set").At(p.Name, "").WithHint("set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID")
	case c.team == "" || c.project == "":
		return nil, fault.Usage("team and project must both be set").At(p.Name, "").WithHint("set VERCEL_TEAM_ID and VERCEL_PROJECT_ID, or team: and project:")
	}
	var err error
	c.http, err = httpx.New(d.Net, httpx.Options{
		Profile: p.Name, Base: either(s["url"], "https://vercel.com/api"), Secrets: []string{s["token"]},
		Header: http.Header{"Authorization": {"Bearer " + s["token"]}}, Stall: stall,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func either(first, otherwise string) string {
	if first != "" {
		return first
	}
	return otherwise
}

// claims reads team and project from the payload of an OIDC token, which the API
// checks and this does not; "" for any other token.
func claims(token string) (team, project string) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c struct {
		Owner   string `json:"owner_id"`
		Project string `json:"project_id"`
	}
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return "", ""
	}
	return c.Owner, c.Project
}

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
	case "verify":
		return "the session itself tells its end"
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

// at names the profile and the operation in an error of another room.
func (c *Client) at(err error, op string) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.KindOf(err), Provider: c.name, Op: op, Hint: fault.HintOf(err), Err: err}
}
