package daytona

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// TypeName is the provider type's name.
const TypeName = "daytona"

const (
	defaultURL = "https://app.daytona.io/api"
	// skipActivity keeps a look from counting as activity, which would reset the
	// auto-stop timer and falsify "idle for" (Daytona proxy).
	skipActivity = "X-Daytona-Skip-Last-Activity-Update"
)

// Client is one organization.
type Client struct {
	name    string
	target  string
	now     func() time.Time
	http    *httpx.Client
	mu      sync.Mutex
	account string            // the organization's id, once known
	boxes   map[string]string // id -> address of its toolbox
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
	_ providers.Checker       = (*Client)(nil)
	_ providers.Clock         = (*Client)(nil)
	_ providers.Explainer     = (*Client)(nil)
)

// Type describes Daytona.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "Daytona: sandboxes with a disk that outlives a stop", SwitchedOn: []string{"DAYTONA_API_KEY"}, TellsQuota: true,
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsState}, // its disk
		LabelsIn:  "`labels` of the parameters of `create`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "", Shows: "when a client last called (`lastActivityAt`)", Misses: "a program that works without a call from outside"},
			{Ability: "logs", Shows: "of what sbx created: what the program wrote; of others: what the image's entrypoint writes", Misses: "of others: what commands and sessions write"},
			{Ability: "usage", Shows: "processor and memory, now", Misses: "what waits"},
			{Ability: "processes", Shows: "commands of sbx that run inside", Misses: "commands of other clients: their calls move `lastActivityAt` while they are open"},
			{Ability: "probe", Shows: "whether the toolbox answers; twice 502 is definite", Misses: "whether the program does anything"},
		},
		Options: []providers.Option{
			{Name: "token", Env: "DAYTONA_API_KEY", Kind: providers.OptionText, Secret: true, Help: "API key; it belongs to one organization"},
			{Name: "url", Env: "DAYTONA_API_URL", Default: defaultURL, Kind: providers.OptionText, Help: "address of the API, with its /api"},
			{Name: "organization", Env: "DAYTONA_ORGANIZATION_ID", Kind: providers.OptionText, Account: true, Help: "organization id; a key needs none"},
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
	base := s["url"]
	if base == "" {
		base = defaultURL
	}
	header := http.Header{"X-Daytona-Source": {"sbx"}, "X-Daytona-Sdk-Version": {"0.205.1"}}
	header.Set("Authorization", "Bearer "+s["token"])
	if s["organization"] != "" {
		header.Set("X-Daytona-Organization-Id", s["organization"])
	}
	h, err := httpx.New(d.Net, httpx.Options{Profile: p.Name, Base: base, Header: header, Secrets: []string{s["token"]}})
	if err != nil {
		return nil, err
	}
	return &Client{name: p.Name, target: s["target"], now: d.Now, http: h, account: s["organization"], boxes: map[string]string{}}, nil
}

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "daytona".
func (c *Client) Type() string { return TypeName }

// Close lets idle connections go.
func (c *Client) Close() { c.http.Close() }

// WhyNot says why an ability is missing.
func (c *Client) WhyNot(ability string) string {
	switch ability {
	case "stats":
		return "the API counts nothing; the listing is counted"
	case "activity":
		return "the record's last activity is all that the API tells"
	case "records":
		return "the provider's own list is all there is"
	case "sweep":
		return "nothing of it runs on this machine"
	}
	return ""
}

// learn keeps what a row tells beside the sandbox: where its toolbox is, and
// which organization it belongs to.
func (c *Client) learn(w wireSandbox) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ToolboxProxyURL != "" {
		c.boxes[w.ID] = strings.TrimRight(w.ToolboxProxyURL, "/") + "/" + w.ID
	}
	if c.account == "" {
		c.account = w.OrganizationID
	}
}

// toolbox addresses a request to the toolbox of a sandbox. look says that it is
// no activity of the sandbox's.
func (c *Client) toolbox(r httpx.Request, id string, look bool) httpx.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.URL, r.OneSandbox = c.boxes[id]+r.Path, true
	if look {
		r.Header = http.Header{skipActivity: {"true"}}
	}
	return r
}
