// Package daytona speaks Daytona's API and that of the toolbox inside its sandboxes.
//
// An end is a stop, which keeps the disk; only a delete destroys. A delete is asynchronous
// and hides failed sandboxes, and a 404 proves it only when it comes twice and the list
// agrees. Every call of the toolbox resets a sandbox's auto-stop timer unless a header
// prevents it; every read of this package sends that header.
//
// Commands run detached, with their output in files that are read by offset: a session of
// the toolbox is one long shell that `exit 5` ends for good, and the answers of the toolbox
// cannot carry binary output.
package daytona

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
)

// TypeName is the provider type's name.
const TypeName = "daytona"

const (
	defaultURL = "https://app.daytona.io/api"
	// skipActivity keeps a read from counting as activity, which would reset the auto-stop
	// timer and the idle time (Daytona proxy).
	skipActivity = "X-Daytona-Skip-Last-Activity-Update"
)

// Client is one organization.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	target string
	turns  guest.Turns

	mu      sync.Mutex
	account string            // the organization's id, once known
	boxes   map[string]string // sandbox id -> address of its toolbox
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
	_ providers.QuotaReader   = (*Client)(nil)
	_ providers.Verifier      = (*Client)(nil)
	_ providers.LabelEditor   = (*Client)(nil)
	_ providers.Extender      = (*Client)(nil)
	_ providers.Checker       = (*Client)(nil)
	_ providers.Clock         = (*Client)(nil)
	_ providers.Explainer     = (*Client)(nil)
)

// Type describes Daytona.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Daytona: sandboxes whose disk survives a stop", SwitchedOn: []string{"DAYTONA_API_KEY"}, TellsQuota: true,
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsState}, // its disk
		LabelsIn:  "`labels` of the parameters of `create`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "", Shows: "when a client last called (`lastActivityAt`)", Misses: "a program that works without calls from outside"},
			{
				Ability: "logs", Shows: "created by sbx: output of the program; others: output of the image's entrypoint",
				Misses: "when a line was written; others: output of commands and sessions",
			},
			{Ability: "usage", Shows: "current CPU and memory", Misses: "what waits"},
			{Ability: "processes", Shows: "running commands of sbx", Misses: "commands of other clients: their open calls update `lastActivityAt`"},
			{Ability: "probe", Shows: "whether the toolbox answers; two 502 in a row are definite", Misses: "whether the program is active"},
		},
		Options: []providers.Option{
			{Name: "token", Env: "DAYTONA_API_KEY", Kind: providers.OptionText, Secret: true, Help: "API key of one organization"},
			{Name: "url", Env: "DAYTONA_API_URL", Default: defaultURL, Kind: providers.OptionText, Help: "address of the API, including /api"},
			{Name: "organization", Env: "DAYTONA_ORGANIZATION_ID", Kind: providers.OptionText, Account: true, Help: "organization id; not needed with an API key"},
			{Name: "target", Env: "DAYTONA_TARGET", Kind: providers.OptionText, Help: "region of new sandboxes"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	s := p.Settings
	if s["token"] == "" {
		return nil, fault.New(fault.KindAuth, "no API key is set").At(p.Name, "").WithHint("set DAYTONA_API_KEY, or token_env: in the profile")
	}
	header := http.Header{"X-Daytona-Source": {"sbx"}, "X-Daytona-Sdk-Version": {"0.205.1"}}
	header.Set("Authorization", "Bearer "+s["token"])
	if s["organization"] != "" {
		header.Set("X-Daytona-Organization-Id", s["organization"])
	}
	base, err := wirekit.NewBase(
		p, d, TypeName, httpx.Options{Base: cmp.Or(s["url"], defaultURL), Header: header, Secrets: []string{s["token"]}, Definite: saysBroken},
	)
	if err != nil {
		return nil, err
	}
	return &Client{Base: base, target: s["target"], account: s["organization"], boxes: map[string]string{}, Reasons: wirekit.Reasons{
		"stats":    "the API has no counts; sbx counts the listing",
		"activity": "the API reports only the record's last activity",
		"records":  "the provider's own list is the only source",
	}}, nil
}

// recordRow records the address of a sandbox's toolbox and the id of its organization.
func (c *Client) recordRow(w wireSandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ToolboxProxyURL != "" {
		c.boxes[w.ID] = strings.TrimRight(w.ToolboxProxyURL, "/") + "/" + w.ID
	}
	if c.account == "" {
		c.account = w.OrganizationID
	}
}

// toolbox addresses a request to the toolbox of a sandbox. passive keeps the request from
// counting as activity of the sandbox.
func (c *Client) toolbox(r httpx.Request, id string, passive bool) httpx.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.URL, r.OneSandbox, r.OwnHost = c.boxes[id]+r.Path, true, true
	if passive {
		r.Header = http.Header{skipActivity: {"true"}}
	}
	return r
}
