package vercel

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// TypeName is the provider type's name.
const TypeName = "vercel"

const (
	defaultURL     = "https://vercel.com/api" // what the official SDKs ask
	defaultRuntime = "node24"
)

// Type describes Vercel Sandbox.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Vercel Sandbox: named sandboxes, each run of which is a session",
		SwitchedOn: []string{"VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"},
		Facts:      providers.Facts{EndKeeps: providers.EndKeepsState}, // its name, and the snapshot that the next session begins with
		LabelsIn:   "`tags` of `Sandbox.create`, five at most, with a dash for the slash: `sbx-owner`, `sbx-task`, `sbx-agent-type`, `sbx-keep`",
		ExitWords:  exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "what every command wrote, without times", Misses: "when a line was written, and what a shell left behind writes"},
			{Ability: "processes", Shows: "the commands that have not ended", Misses: "what those started in turn"},
			{Ability: "usage", Shows: "what a command inside measures", Misses: "what waits"},
			{Ability: "probe", Shows: "the session's status", Misses: "whether the program does anything"},
		},
		Options: []providers.Option{
			{Name: "token", Env: "VERCEL_TOKEN", Kind: providers.OptionText, Secret: true, Help: "access token, or an OIDC token that names team and project itself"},
			{Name: "team", Env: "VERCEL_TEAM_ID", Kind: providers.OptionText, Account: true, Help: "team id"},
			{Name: "project", Env: "VERCEL_PROJECT_ID", Kind: providers.OptionText, Account: true, Help: "project id"},
			{Name: "url", Env: "SBX_VERCEL_URL", Default: defaultURL, Kind: providers.OptionText, Help: "address of the API"},
			{Name: "runtime", Default: defaultRuntime, Kind: providers.OptionText, Help: "runtime of a sandbox that names no template, image or snapshot"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	s := p.Settings
	if s["token"] == "" {
		return nil, fault.New(fault.KindAuth, "no token is set").At(p.Name, "").WithHint("set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID")
	}
	told := readClaims(s["token"])
	c := &Client{
		name: p.Name, now: d.Now, runtime: cmp.Or(s["runtime"], defaultRuntime),
		team: cmp.Or(s["team"], told.Team), project: cmp.Or(s["project"], told.Project), expires: told.expires(), names: &sessionNames{}, notice: d.Notice,
	}
	if c.team == "" || c.project == "" {
		return nil, fault.Usage("team and project must both be set").At(p.Name, "").WithHint("set VERCEL_TEAM_ID and VERCEL_PROJECT_ID, or team: and project:")
	}
	if c.notice == nil {
		c.notice = func(string) {}
	}
	if c.now == nil {
		c.now = time.Now
	}
	var err error
	c.http, err = httpx.New(d.Net, httpx.Options{
		Profile: p.Name, Base: cmp.Or(s["url"], defaultURL), Secrets: []string{s["token"]},
		Header: http.Header{"Authorization": {"Bearer " + s["token"]}}, Stall: stall, Gone: true,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// claims is what an OIDC token says of itself. The API checks it, this does not.
type claims struct {
	Team    string  `json:"owner_id"`
	Project string  `json:"project_id"`
	Expires float64 `json:"exp"` // seconds of Unix time
}

// readClaims reads the payload of an OIDC token; nothing for any other token.
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

func (c claims) expires() time.Time { return millis(c.Expires * 1000).time() }
