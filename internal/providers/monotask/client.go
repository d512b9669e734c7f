// Package monotask speaks the sandbox API of MonoTask's agent worker, which runs on
// Cloudflare: stats, list, one sandbox, its logs and resources, delete, and two cleanups of
// the provider's own.
//
// A sandbox is code beside a Durable Object and no machine: nothing can be run in it, and its
// figures are what the agent reports about itself. No description of the API is published, so
// the package accepts several formats of an answer, and an answer that it does not understand
// is an error and never empty.
package monotask

import (
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
)

// TypeName is the provider type's name.
const TypeName = "monotask"

// Which calls have the admin token: in the runbook only a cleanup has it (R166).
const (
	optionTokenScope = "token_scope"
	scopeCleanup     = "cleanup"
	scopeAll         = "all"
)

// Client is one agent worker.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	admin http.Header                 // of the calls that need the admin token
	lists *sharedReads[[]wireSandbox] // for verifications of ends
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
		LabelsIn:  "nowhere: it reports task and agent type itself, and `sbx config own --all` is the only rule",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{Ability: "logs", Shows: "what the worker stores; the format is not published", Misses: "whatever the worker does not store"},
			{Ability: "usage", Shows: "figures that the worker reports", Misses: "what waits"},
		},
		Options: []providers.Option{
			{Name: "url", Env: "MONOTASK_URL", Kind: providers.OptionText, Help: "address of the agent worker"},
			{Name: "token", Env: "MONOTASK_TOKEN", Kind: providers.OptionText, Secret: true, Help: "admin token; sent only with the worker's own cleanups"},
			{
				Name: optionTokenScope, Kind: providers.OptionText, Default: scopeCleanup, Choices: []string{scopeCleanup, scopeAll},
				Help: "which calls carry the token; `all` where a proxy before the worker needs it with each",
			},
			{
				Name: providers.OptionActivity, Kind: providers.OptionText, Default: providers.ActivityAgeOnly,
				Choices: []string{providers.ActivityAuto, providers.ActivityAgeOnly}, Help: "the API reports no last activity, so that only age can be judged",
			},
			{
				Name: providers.OptionStuckAfter, Kind: providers.OptionLimits, Default: "{implementation: 15m}",
				Help: "ages after which a silent sandbox counts as stuck, by agent type, and default; an implementation may run for 15 minutes",
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
	base, err := wirekit.NewBase(p, d, TypeName, httpx.Options{Base: p.Settings["url"], Header: always, Secrets: []string{token}, RefusedHint: refusedHint(p)})
	if err != nil {
		return nil, err
	}
	return &Client{Base: base, admin: admin, lists: newSharedReads[[]wireSandbox](), Reasons: wirekit.Reasons{
		"create":   "sandboxes are started by its queue, not by its API",
		"exec":     "a sandbox is code beside a Durable Object: no command can run in it",
		"events":   "the API has none",
		"exit":     "the API has no exit codes",
		"activity": "the API does not report activity",
		"quota":    "the API does not report limits",
		"labels":   "the API keeps no labels",
		"extend":   "the API has no call that moves a time limit; its queue can start the task again",
	}}, nil
}

// refusedHint is what to do where a call is refused: the token is optional, and most calls do not carry it.
func refusedHint(p providers.Profile) string {
	switch {
	case p.Unset["token"] != "":
		return "the worker wants a token, and " + p.Unset["token"] + " is empty (token_env of " + p.Name + ")"
	case p.Settings["token"] == "":
		return "the worker wants a token: set MONOTASK_TOKEN, or token_env in the profile"
	case p.Settings[optionTokenScope] != scopeAll:
		return "the token is sent with the worker's own cleanups alone; where it is needed with each call, write token_scope: all into the profile"
	}
	return ""
}

// sandboxRequest is a request for a sandbox or something below it. Words that the API uses in
// its own paths are refused as ids.
func (c *Client) sandboxRequest(op, id string, more ...string) (httpx.Request, error) {
	switch id {
	case "list", "stats", "cleanup":
		return httpx.Request{}, fault.Usage("%q is a reserved word of the API, not a sandbox", id).At(c.Profile, op+" "+id)
	}
	return httpx.Request{Op: op + " " + id, Path: httpx.Path(append([]string{"api", "sandbox", id}, more...)...), OneSandbox: len(more) > 0}, nil
}
