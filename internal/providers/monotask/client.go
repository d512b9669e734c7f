package monotask

import (
	"context"
	"net/http"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// TypeName is the provider type's name.
const TypeName = "monotask"

// Which calls carry the admin token: the runbook shows it with a cleanup alone (R166).
const (
	optionTokenScope = "token_scope"
	scopeCleanup     = "cleanup"
	scopeAll         = "all"
)

// Client is one agent worker.
type Client struct {
	name  string
	now   func() time.Time
	http  *httpx.Client
	admin http.Header // of the calls that need the admin token

	lists *shared[[]wireSandbox] // for those who verify an end
}

var (
	_ providers.Provider        = (*Client)(nil)
	_ providers.LogReader       = (*Client)(nil)
	_ providers.UsageReader     = (*Client)(nil)
	_ providers.StatsReader     = (*Client)(nil)
	_ providers.Prober          = (*Client)(nil)
	_ providers.Recorder        = (*Client)(nil)
	_ providers.RecordRemover   = (*Client)(nil)
	_ providers.Verifier        = (*Client)(nil)
	_ providers.Checker         = (*Client)(nil)
	_ providers.Clock           = (*Client)(nil)
	_ providers.Explainer       = (*Client)(nil)
	_ providers.ProviderCleaner = (*Client)(nil)
)

// Type describes MonoTask.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "MonoTask's agent worker on Cloudflare", SwitchedOn: []string{"MONOTASK_URL"}, NoLabels: true, Emergency: true, KeepsRecords: true,
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsNothing}, // both are one DELETE
		LabelsIn:  "nowhere: it tells task and agent type by itself, and `sbx config own --all` is the only rule",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "what the worker keeps; its form is not published", Misses: "whatever the worker does not keep"},
			{Ability: "usage", Shows: "what the worker reports of itself", Misses: "what waits"},
		},
		Options: []providers.Option{
			{Name: "url", Env: "MONOTASK_URL", Kind: providers.OptionText, Help: "address of the agent worker"},
			{Name: "token", Env: "MONOTASK_TOKEN", Kind: providers.OptionText, Secret: true, Help: "admin token; the worker's own cleanups need it, and nothing else gets it"},
			{
				Name: optionTokenScope, Kind: providers.OptionText, Default: scopeCleanup, Choices: []string{scopeCleanup, scopeAll},
				Help: "which calls carry the token; all, where the worker stands behind something that wants it with each",
			},
			{
				Name: providers.OptionActivity, Kind: providers.OptionText, Default: providers.ActivityAgeOnly,
				Choices: []string{providers.ActivityAuto, providers.ActivityAgeOnly}, Help: "it tells no last activity, so that age is all there is to judge by",
			},
			{
				Name: providers.OptionStuckAfter, Kind: providers.OptionLimits, Default: "{implementation: 15m}",
				Help: "ages from which a silent sandbox counts as stuck, by agent type, and default; an implementation may run for 15 minutes",
			},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	token := p.Settings["token"]
	always, admin := http.Header{}, http.Header{}
	if token != "" {
		admin.Set("Authorization", "Bearer "+token)
	}
	if p.Settings[optionTokenScope] == scopeAll {
		always = admin
	}
	if p.Settings["url"] == "" {
		return nil, fault.Usage("no url is set").At(p.Name, "").WithHint("set MONOTASK_URL, or url: in the profile")
	}
	c, err := httpx.New(d.Net, httpx.Options{Profile: p.Name, Base: p.Settings["url"], Header: always, Secrets: []string{token}})
	if err != nil {
		return nil, err
	}
	return &Client{name: p.Name, now: d.Now, http: c, admin: admin, lists: newShared[[]wireSandbox]()}, nil
}

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "monotask".
func (c *Client) Type() string { return TypeName }

// Close lets idle connections go.
func (c *Client) Close() { c.http.Close() }

// WhyNot says why an ability is missing.
func (c *Client) WhyNot(ability string) string {
	switch ability {
	case "create":
		return "its queue starts sandboxes, not its sandbox API"
	case "exec":
		return "a sandbox is code beside a Durable Object: nothing can be run in it"
	case "events":
		return "the API keeps none"
	case "exit":
		return "the API keeps no exits"
	case "activity":
		return "the API tells no last activity"
	case "quota":
		return "the API tells no limits"
	case "sweep":
		return "nothing of it runs on this machine"
	}
	return ""
}

// below is a path of the sandbox API. The words that the API uses itself are no
// ids: they are refused before anything is asked.
func (c *Client) below(op, id string, more ...string) (httpx.Request, error) {
	switch id {
	case "list", "stats", "cleanup":
		return httpx.Request{}, fault.Usage("%q is a word of the API, not a sandbox", id).At(c.name, op+" "+id)
	}
	return httpx.Request{Op: op + " " + id, Path: httpx.Path(append([]string{"api", "sandbox", id}, more...)...), OneSandbox: len(more) > 0}, nil
}
