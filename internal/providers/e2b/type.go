package e2b

import (
	"context"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// The names of the types of this room.
const (
	TypeName       = "e2b"
	NovitaTypeName = "novita"
)

// dialect is what differs between clouds that speak this API.
type dialect struct {
	name   string
	help   string
	prefix string  // of environment variables: E2B_API_KEY
	domain string  // the default
	header string  // of the headers that route to a sandbox: E2b-Sandbox-Id
	old    bool    // lists know no order; logs, events and bulk metrics may be missing
	rate   float64 // requests per second that its documents allow; 0 = they do not say
}

// officialRate keeps a burst and half a minute of it below what E2B documents: 20,000
// requests in 30 s to its API, and 40,000 in 60 s from one address into sandboxes.
const officialRate = 600

func official() dialect {
	return dialect{TypeName, "E2B: Firecracker VMs behind an API key", "E2B", "e2b.app", "E2b", false, officialRate}
}

func novita() dialect {
	return dialect{NovitaTypeName, "Novita's sandboxes, which speak E2B's API", "NOVITA", "us-phx-1.sandbox.novita.ai", "Novita", true, 0}
}

// Type describes E2B.
func Type() providers.Type {
	return official().typed(func(c *Client) providers.Provider { return c })
}

// NovitaType describes Novita.
func NovitaType() providers.Type {
	t := novita().typed(func(c *Client) providers.Provider { return &Novita{c} })
	t.TellsQuota = true
	return t
}

func (d dialect) typed(as func(*Client) providers.Provider) providers.Type {
	return providers.Type{
		Name: d.name, Help: d.help, SwitchedOn: []string{d.prefix + "_API_KEY"},
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsState}, // of a paused one its snapshot; of a running one nothing
		LabelsIn:  "`metadata` of `Sandbox.create`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "of what sbx created: what its program wrote; of others: what envd did, such as a start", Misses: "whatever programs of other clients write: an agent that is one long command never appears"},
			{Ability: "usage", Shows: "processor and memory of the VM, now", Misses: "what waits"},
			{Ability: "history", Shows: "the same every 5 s for 7 days: a processor at its limit for 5 minutes, memory that grows", Misses: "what waits"},
			{Ability: "processes", Shows: "the programs that envd started, whoever asked", Misses: "what those started in turn, and whether any of it works"},
			{Ability: "probe", Shows: "whether envd answers; 502 `port is not open` is definite", Misses: "an envd that hangs cannot be told from a slow network: unknown"},
		},
		Options: []providers.Option{
			{Name: "token", Env: d.prefix + "_API_KEY", Kind: providers.OptionText, Secret: true, Help: "API key of a project; it picks the team"},
			{Name: "domain", Env: d.prefix + "_DOMAIN", Default: d.domain, Kind: providers.OptionText, Account: true, Help: "domain of the API and of the sandboxes' hosts"},
			{Name: "url", Env: d.prefix + "_API_URL", Kind: providers.OptionText, Help: "address of the API, instead of https://api.DOMAIN"},
			{Name: "sandbox_url", Env: d.prefix + "_SANDBOX_URL", Kind: providers.OptionText, Help: "one address for all sandboxes, which are told apart by headers"},
			{Name: "template", Default: "base", Kind: providers.OptionText, Help: "template of a sandbox that names none"},
		},
		Open: func(_ context.Context, p providers.Profile, deps providers.Deps) (providers.Provider, error) {
			c, err := open(d, p, deps)
			if err != nil {
				return nil, err
			}
			return as(c), nil
		},
	}
}

// legacy says that a domain hands out ids in two parts, which are used as one:
// sandboxID-clientID (Novita's older regions).
func (d dialect) legacy(domain string) bool {
	switch strings.ToLower(domain) {
	case "sandbox.novita.ai", "us-01.sandbox.novita.ai", "us-ga-01.sandbox.novita.ai", "us-ga-1.sandbox.novita.ai":
		return d.old
	}
	return false
}

// stable says that all sandboxes of a domain answer at one host.
func stable(domain string) bool {
	switch strings.ToLower(domain) {
	case "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev":
		return true
	}
	return false
}

func open(d dialect, p providers.Profile, deps providers.Deps) (*Client, error) {
	domain := p.Settings["domain"]
	if domain == "" {
		domain = d.domain
	}
	base := p.Settings["url"]
	if base == "" {
		base = "https://api." + domain
	}
	token := p.Settings["token"]
	if token == "" {
		return nil, fault.New(fault.KindAuth, "no API key is set").At(p.Name, "").WithHint("set %s, or token_env: in the profile", d.prefix+"_API_KEY")
	}
	api, err := httpx.New(deps.Net, httpx.Options{
		Profile: p.Name, Base: base, Header: header("X-Api-Key", token), Secrets: []string{token}, Explain: explain, Rate: d.rate,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		name: p.Name, dialect: d, domain: domain, now: deps.Now, api: api,
		sandboxURL: strings.TrimRight(p.Settings["sandbox_url"], "/"), template: p.Settings["template"],
		legacy: d.legacy(domain),
	}
	hosts := c.sandboxURL
	if hosts == "" {
		hosts = "https://sandbox." + domain
	}
	// Commands may be silent for long; envd is asked for a sign of life each 20 s.
	c.hosts, err = httpx.New(deps.Net, httpx.Options{Profile: p.Name, Base: hosts, Secrets: []string{token}, Explain: explain, Stall: stall, Rate: d.rate})
	return c, err
}
