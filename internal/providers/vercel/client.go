// Package vercel speaks the API of Vercel Sandbox.
//
// The API has two objects: a sandbox, which is a durable name with a configuration and a
// snapshot, and a session, which is one run of its VM. The id of a sandbox of sbx is the id
// of its current session, so that an end reaches the selected run and no other; its name is
// that of the sandbox. Nothing here resumes a session: that starts a VM and its bill.
package vercel

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
)

// Client is one project of one team.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	team    string
	project string
	runtime string
	expires time.Time // of an OIDC token; zero = not known
	names   *sessionNames
	turns   guest.Turns
	notice  func(text string)
	altered sync.Once // for the notice that output may have been altered
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
	_ providers.LabelEditor   = (*Client)(nil)
	_ providers.Extender      = (*Client)(nil)
	_ providers.Checker       = (*Client)(nil)
	_ providers.Clock         = (*Client)(nil)
	_ providers.Explainer     = (*Client)(nil)
)

// teamQuery is a query with the team, which every call needs.
func (c *Client) teamQuery(pairs ...string) url.Values {
	q := url.Values{"teamId": {c.team}}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

func (c *Client) getObject(ctx context.Context, op, path string, out any) error {
	_, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: path, Query: c.teamQuery()}, out)
	return err
}

func sessionPath(id string, more ...string) string {
	return httpx.Path(append([]string{"v2", "sandboxes", "sessions", id}, more...)...)
}

// errorCode is the error code of the API: sandbox_stopped, snapshot_not_found.
func errorCode(err error) string {
	if s := httpx.StatusOf(err); s != nil {
		return s.Code
	}
	return ""
}

// inTransition says that a session is between two states, by the codes of a 422.
func inTransition(err error) bool {
	code := errorCode(err)
	return code == "sandbox_stopping" || code == "sandbox_snapshotting"
}

// TypeName is the provider type's name.
const TypeName = "vercel"

const (
	defaultURL     = "https://vercel.com/api" // the address of the official SDKs
	defaultRuntime = "node24"
)

// Type describes Vercel Sandbox.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Vercel Sandbox: named sandboxes; each run of one is a session",
		SwitchedOn: []string{"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"},
		Facts:      providers.Facts{EndKeeps: providers.EndKeepsState}, // its name, and the snapshot that the next session begins with
		LabelsIn:   "`tags` of `Sandbox.create`, five at most, with a dash for the slash: `sbx-owner`, `sbx-task`, `sbx-agent-type`, `sbx-keep`",
		ExitWords:  exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "output of every command, without times", Misses: "when a line was written, and output of background processes of a shell"},
			{Ability: "processes", Shows: "commands that have not ended", Misses: "their child processes"},
			{Ability: "usage", Shows: "figures measured by a command in the sandbox", Misses: "what waits"},
			{Ability: "probe", Shows: "the session's status", Misses: "whether the program is active"},
		},
		Options: []providers.Option{
			{Name: "token", Env: "VERCEL_TOKEN", Kind: providers.OptionText, Secret: true, Help: "access token, or an OIDC token, which names team and project itself"},
			{Name: "team", Env: "VERCEL_TEAM_ID", Kind: providers.OptionText, Account: true, Help: "team id"},
			{Name: "project", Env: "VERCEL_PROJECT_ID", Kind: providers.OptionText, Account: true, Help: "project id"},
			{Name: "url", Env: "SBX_VERCEL_URL", Default: defaultURL, Kind: providers.OptionText, Help: "address of the API"},
			{Name: "runtime", Default: defaultRuntime, Kind: providers.OptionText, Help: "default runtime, without a template, image or snapshot"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	s := p.Settings
	if s["token"] == "" {
		return nil, fault.New(fault.KindAuth, "no token is set").At(p.Name, "").WithHint("set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID")
	}
	token := readClaims(s["token"])
	c := &Client{
		runtime: cmp.Or(s["runtime"], defaultRuntime), team: cmp.Or(s["team"], token.Team), project: cmp.Or(s["project"], token.Project),
		expires: millis(token.Expires * 1000).time(), names: &sessionNames{}, notice: d.Notice,
		Reasons: wirekit.Reasons{
			"stats":    "the API has no counts",
			"quota":    "the API does not report limits",
			"activity": "the API does not report activity",
			"records":  "the provider's own list is the only source",
		},
	}
	if c.team == "" || c.project == "" {
		return nil, fault.Usage("team and project must both be set").At(p.Name, "").WithHint("set VERCEL_TEAM_ID and VERCEL_PROJECT_ID, or team: and project:")
	}
	if c.notice == nil {
		c.notice = func(string) {}
	}
	var err error
	c.Base, err = wirekit.NewBase(p, d, TypeName, httpx.Options{
		Base: cmp.Or(s["url"], defaultURL), Secrets: []string{s["token"]},
		Header: http.Header{"Authorization": {"Bearer " + s["token"]}}, Stall: stall, Gone: true,
		Definite: func(s *httpx.StatusError) bool { return s.Status == http.StatusGone },
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// claims are in the payload of an OIDC token. Only the API verifies the token.
type claims struct {
	Team    string  `json:"owner_id"`
	Project string  `json:"project_id"`
	Expires float64 `json:"exp"` // seconds of Unix time
}

// readClaims reads the payload of an OIDC token; zero for any other token.
func readClaims(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return claims{}
	}
	return c
}
