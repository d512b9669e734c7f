// Package docker speaks the API of Docker's engine, and of Podman, which answers the same requests.
//
// An end is a stop, which keeps the container with its disk and its log; only a delete destroys it. Every
// request names the full id: a name may belong to another container by now, and the API takes three
// characters of an id for the whole.
//
// A container that sbx made runs a shell that waits until its time limit. The program runs inside, with its
// output in files (room guest), as at every provider whose sandboxes outlive their program. Any other
// container has the log and the exit of its own main program.
package docker

import (
	"context"
	"net"
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
const TypeName = "docker"

// Client is one engine.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	at       endpoint
	label    string // KEY=VALUE or KEY of the containers that the profile has; "" = all
	defaults createDefaults
	turns    guest.Turns
	watches  guest.Watches
	lately   wirekit.Lately[wireContainer] // what Get has read, with all labels
	started  wirekit.Lately[wireContainer] // those of Create whose program was started a moment ago, with their own labels
	over     sync.Map                      // ids of commands that are scripts of sbx, or have ended: nobody needs to ask about them
	images   imageLabels

	mu     sync.Mutex
	engine engine // the zero value before the first answer
}

var (
	_ providers.Provider      = (*Client)(nil)
	_ providers.NameReader    = (*Client)(nil)
	_ providers.LogReader     = (*Client)(nil)
	_ providers.LogPartReader = (*Client)(nil)
	_ providers.ProcessLister = (*Client)(nil)
	_ providers.TroubleReader = (*Client)(nil)
	_ providers.UsageReader   = (*Client)(nil)
	_ providers.Launcher      = (*Client)(nil)
	_ providers.Vetter        = (*Client)(nil)
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

// Type describes Docker.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "containers of Docker's engine, or of Podman", SwitchedOn: []string{"DOCKER_HOST"}, TellsQuota: true,
		Facts:    providers.Facts{EndKeeps: providers.EndKeepsState},
		LabelsIn: "`--label` of `docker run`",
		LifeSigns: []providers.LifeSign{
			{
				Ability: "logs", Shows: "created by sbx: output of the program; others: lines of the main program",
				Misses: "others: output of `docker exec`, and a line before its end",
			},
			{Ability: "usage", Shows: "CPU time, memory, packets and disk operations of the control group", Misses: "what waits"},
			{Ability: "processes", Shows: "running commands of `docker exec` and of sbx", Misses: "their child processes"},
			{Ability: "probe", Shows: "whether a shell starts in it", Misses: "whether the program is active"},
		},
		Options: []providers.Option{
			{
				Name: "host", Env: "DOCKER_HOST", Kind: providers.OptionText, Account: true,
				Help: "address of the engine: unix:///var/run/docker.sock, tcp://host:2376, ssh://user@host",
			},
			{
				Name: "context", Env: "DOCKER_CONTEXT", Kind: providers.OptionText, Account: true,
				Help: "context of Docker's own program, where there is no host; else its current one",
			},
			{Name: "cert_path", Env: "DOCKER_CERT_PATH", Kind: providers.OptionText, Help: "folder with ca.pem, cert.pem and key.pem, for tcp://"},
			{Name: "tls_verify", Env: "DOCKER_TLS_VERIFY", Kind: providers.OptionText, Help: "empty = the engine's certificate is not checked"},
			{Name: "label", Kind: providers.OptionText, Account: true, Help: "`KEY=VALUE` or KEY: list only containers with this label, and give it to new ones"},
			{Name: "image", Default: guest.DefaultImage, Kind: providers.OptionText, Help: "image of new sandboxes; it needs /bin/sh"},
			{Name: "network", Kind: providers.OptionText, Help: "network of new sandboxes: none, bridge or a name; empty = the engine's default"},
			{Name: "runtime", Kind: providers.OptionText, Help: "runtime of new sandboxes, such as runsc or kata; empty = the engine's default"},
		},
		Open: open,
	}
}

func open(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
	c := &Client{
		label:    p.Settings["label"],
		defaults: createDefaults{image: p.Settings["image"], network: p.Settings["network"], runtime: p.Settings["runtime"]},
		Reasons: wirekit.Reasons{
			"history":  "the engine keeps no samples",
			"stats":    "the engine has no counts of the past; sbx counts the listing",
			"activity": "the engine reports no activity",
			"records":  "the provider's own list is the only source",
			"labels":   "the engine cannot change the labels of a container",
			"extend":   "the engine has no time limit, and one that sbx made ends with its main program, at the time it was made with; `sbx create --ttl` makes another",
		},
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	var err error
	if c.at, err = findEndpoint(p.Settings, lookup, d.Connect); err != nil {
		return nil, fault.Placed(err, p.Name, "")
	}
	if d.Net.Dial == nil {
		d.Net.Dial = c.at.dial
	}
	c.Base, err = wirekit.NewBase(p, d, TypeName, httpx.Options{Base: c.at.base(), Explain: httpx.Explain})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dial connects to the engine. That it failed is an error of a dial for every kind of address, so that a request
// counts as not sent.
func (e endpoint) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := e.Dial(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "engine", Err: err}
	}
	return conn, nil
}

// request is a call of the version of the API that this program and the engine share.
func (c *Client) request(ctx context.Context, r httpx.Request) (httpx.Request, error) {
	e, err := c.knownEngine(ctx, r.Op)
	if err != nil {
		return r, err
	}
	r.OneSandbox = aboutOne(r)
	r.Path = "/v" + e.api + r.Path
	return r, nil
}

// aboutOne says that a request fails for reasons of one container: the engine asks its runtime, its processes, its disk
// or its log. That such a request has no good answer says nothing of the engine.
func aboutOne(r httpx.Request) bool {
	parts := strings.Split(r.Path, "/")
	return parts[1] == "exec" || parts[1] == "containers" && (len(parts) > 3 && parts[3] != "json" || r.Method == http.MethodDelete)
}

// json is a call with an answer in JSON.
func (c *Client) json(ctx context.Context, r httpx.Request, out any) error {
	return c.call(ctx, r, func(r httpx.Request) error {
		_, err := c.API.JSON(ctx, r, out)
		return err
	})
}

// call sends a request, and once more where another engine answers at the address since the last one.
func (c *Client) call(ctx context.Context, r httpx.Request, send func(httpx.Request) error) error {
	for try := 1; ; try++ {
		at, err := c.request(ctx, r)
		if err != nil {
			return err
		}
		if err = send(at); !refusesVersion(err) {
			return c.awayFault(r.Op, err)
		}
		if try > 1 {
			return c.Fault(
				fault.KindUnsupported, r.Op, "the engine does not take the versions of the API that sbx speaks: %w", err,
			).WithHint("update sbx: it speaks 1.%d to 1.%d", oldestAPI, newestAPI)
		}
		c.forgetEngine()
	}
}

// send is a call whose answer has no content. 304 says that it had been done before.
func (c *Client) send(ctx context.Context, r httpx.Request) error {
	err := c.call(ctx, r, func(r httpx.Request) error {
		_, err := c.API.Do(ctx, r)
		return err
	})
	if httpx.Status(err) == http.StatusNotModified {
		return nil
	}
	return err
}
