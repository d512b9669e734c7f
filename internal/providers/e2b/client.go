// Package e2b speaks E2B's API and that of clouds with the same API: Novita is a second type
// of provider, with a dialect of its own.
//
// Sandboxes are VMs with a time limit; there is no stop, and a paused one is a snapshot that
// DELETE destroys. Commands run through envd inside the VM, over the Connect protocol in JSON.
// No read connects, resumes or refreshes a sandbox: each of these lengthens its life.
//
// No policy (deadlines, verification, breakers) and no output enters this package.
package e2b

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
)

// Client is one profile of E2B or of a cloud with the same API.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	dialect    dialect
	domain     string
	sandboxURL string // one address for all sandboxes; "" = by domain
	template   string
	legacy     bool // ids have two parts
	hosts      *httpx.Client
	domains    sync.Map // id -> the domain of a sandbox whose cluster is not the account's
	metrics    route    // the metrics of one sandbox
	newLogs    route    // the newer log
	recent     recentRecords
	turns      guest.Turns
}

var (
	_ providers.Provider           = (*Client)(nil)
	_ providers.LogReader          = (*Client)(nil)
	_ providers.UsageHistoryReader = (*Client)(nil)
	_ providers.UsageBatchReader   = (*Client)(nil)
	_ providers.ProcessLister      = (*Client)(nil)
	_ providers.UsageReader        = (*Client)(nil)
	_ providers.Launcher           = (*Client)(nil)
	_ providers.Commander          = (*Client)(nil)
	_ providers.Prober             = (*Client)(nil)
	_ providers.EventReader        = (*Client)(nil)
	_ providers.ExitReader         = (*Client)(nil)
	_ providers.Verifier           = (*Client)(nil)
	_ providers.Extender           = (*Client)(nil)
	_ providers.Checker            = (*Client)(nil)
	_ providers.Clock              = (*Client)(nil)
	_ providers.Explainer          = (*Client)(nil)
	_ providers.QuotaReader        = (*Novita)(nil)
)

// Close closes idle connections.
func (c *Client) Close() {
	c.Base.Close()
	c.hosts.Close()
}

// explain reads {"code": 404, "message": "...", "error_code": "..."} and envd's
// Connect errors, {"code": "not_found", "message": "..."}.
func explain(_ int, body []byte) (code, message string) {
	var e struct {
		Code      any    `json:"code"`
		Message   string `json:"message"`
		ErrorCode string `json:"error_code"`
	}
	if json.Unmarshal(body, &e) != nil {
		return "", ""
	}
	if word, ok := e.Code.(string); ok {
		return word, e.Message
	}
	return e.ErrorCode, e.Message
}

// The names of the provider types.
const (
	TypeName       = "e2b"
	NovitaTypeName = "novita"
)

type dialect struct {
	name   string
	help   string
	prefix string  // of environment variables: E2B_API_KEY
	domain string  // the default
	header string  // prefix of the headers that route to a sandbox: E2b-Sandbox-Id
	old    bool    // lists have no order; logs, events and bulk metrics may be missing
	rate   float64 // requests per second that its documentation allows; 0 = not documented
	burst  int     // requests at once; 0 = not documented
}

// The pace of E2B keeps a burst and half a minute of the rate below its limits: 20,000 requests in
// 30 s to its API, and 40,000 in 60 s from one address into sandboxes. The burst is large, since a
// look at thousands of sandboxes is over before the rate counts.
const (
	e2bRate  = 400 // requests per second
	e2bBurst = 6600
)

// Type describes E2B.
func Type() providers.Type {
	d := dialect{TypeName, "E2B: Firecracker VMs behind an API key", "E2B", "e2b.app", "E2b", false, e2bRate, e2bBurst}
	return d.providerType(func(c *Client) providers.Provider { return c })
}

// NovitaType describes Novita.
func NovitaType() providers.Type {
	d := dialect{NovitaTypeName, "Novita: sandboxes with E2B's API", "NOVITA", "us-phx-1.sandbox.novita.ai", "Novita", true, 0, 0}
	t := d.providerType(func(c *Client) providers.Provider {
		delete(c.Reasons, "quota")
		return &Novita{c}
	})
	t.TellsQuota = true
	return t
}

func (d dialect) providerType(wrap func(*Client) providers.Provider) providers.Type {
	return providers.Type{
		Name: d.name, Help: d.help, SwitchedOn: []string{d.prefix + "_API_KEY"},
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsState}, // the snapshot of a paused sandbox
		LabelsIn:  "`metadata` of `Sandbox.create`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{
				Ability: "logs", Shows: "created by sbx: output of its program; others: actions of envd, such as a start",
				Misses: "output of other clients' programs: an agent that is one long command never appears",
			},
			{Ability: "usage", Shows: "current CPU and memory of the VM", Misses: "what waits"},
			{Ability: "history", Shows: "the same every 5 s for 7 days: CPU at its limit for 5 minutes, growing memory", Misses: "what waits"},
			{Ability: "processes", Shows: "programs that envd started, for any client", Misses: "their child processes, and whether any of them works"},
			{Ability: "probe", Shows: "whether envd answers; 502 `port is not open` is definite", Misses: "an envd that hangs looks like a slow network: unknown"},
		},
		Options: []providers.Option{
			{Name: "token", Env: d.prefix + "_API_KEY", Kind: providers.OptionText, Secret: true, Help: "API key of a project; it selects the team"},
			{
				Name: "domain", Env: d.prefix + "_DOMAIN", Default: d.domain, Kind: providers.OptionText, Account: true,
				Help: "domain of the API and of the sandboxes' hosts",
			},
			{Name: "url", Env: d.prefix + "_API_URL", Kind: providers.OptionText, Help: "address of the API, instead of https://api.DOMAIN"},
			{Name: "sandbox_url", Env: d.prefix + "_SANDBOX_URL", Kind: providers.OptionText, Help: "one address for all sandboxes, which headers distinguish"},
			{Name: "template", Default: "base", Kind: providers.OptionText, Help: "default template"},
		},
		Open: func(_ context.Context, p providers.Profile, deps providers.Deps) (providers.Provider, error) {
			c, err := open(d, p, deps)
			if err != nil {
				return nil, err
			}
			return wrap(c), nil
		},
	}
}

// hasLegacyIDs says that the ids of a domain have two parts, sandboxID-clientID (Novita's
// older regions).
func (d dialect) hasLegacyIDs(domain string) bool {
	switch strings.ToLower(domain) {
	case "sandbox.novita.ai", "us-01.sandbox.novita.ai", "us-ga-01.sandbox.novita.ai", "us-ga-1.sandbox.novita.ai":
		return d.old
	}
	return false
}

func hasSharedHost(domain string) bool {
	switch strings.ToLower(domain) {
	case "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev":
		return true
	}
	return false
}

func open(d dialect, p providers.Profile, deps providers.Deps) (*Client, error) {
	domain, token := cmp.Or(p.Settings["domain"], d.domain), p.Settings["token"]
	if token == "" {
		return nil, fault.New(fault.KindAuth, "no API key is set").At(p.Name, "").WithHint("set %s, or token_env: in the profile", d.prefix+"_API_KEY")
	}
	base, err := wirekit.NewBase(p, deps, d.name, httpx.Options{
		Base:   cmp.Or(p.Settings["url"], "https://api."+domain),
		Header: http.Header{"X-Api-Key": {token}}, Secrets: []string{token}, Explain: explain, Rate: d.rate, Burst: d.burst,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		Base: base, dialect: d, domain: domain, template: p.Settings["template"], legacy: d.hasLegacyIDs(domain),
		sandboxURL: strings.TrimRight(p.Settings["sandbox_url"], "/"),
		Reasons: wirekit.Reasons{
			"stats":    "the API counts only running sandboxes",
			"quota":    "the API does not report the account's limits",
			"activity": "a sandbox ends only by its time limit; its activity is not measured",
			"records":  "the provider's own list is the only source",
			"labels":   "the API writes metadata only with the create",
		},
	}
	// A command may be silent for long; envd is to send a keep-alive every 20 s.
	c.hosts, err = httpx.New(deps.Net, httpx.Options{
		Profile: p.Name, Base: cmp.Or(c.sandboxURL, "https://sandbox."+domain), Secrets: []string{token}, Explain: explain, Stall: stall, Rate: d.rate, Burst: d.burst,
		Definite: func(s *httpx.StatusError) bool {
			h := hostAnswer{status: s.Status, said: s.Error()}
			return h.isMissing() || h.portClosed()
		},
	})
	return c, err
}

// Frames of a Connect stream: one byte of flags, four of length, the payload.
const (
	flagCompressed = 0x01
	flagEnd        = 0x02
	maxFrame       = 16 << 20 // bytes; envd sends chunks of 32 KiB
)

// errFrame is inside the error of every invalid frame.
var errFrame = errors.New("the stream is invalid")

func encodeFrame(message any) ([]byte, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 5, 5+len(text))
	binary.BigEndian.PutUint32(frame[1:], uint32(len(text)))
	return append(frame, text...), nil
}

// readFrame reads one frame; io.EOF where the stream ends between two frames.
func readFrame(r io.Reader) (flags byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	switch {
	case size > maxFrame:
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errFrame, size)
	case head[0]&flagCompressed != 0:
		return 0, nil, fmt.Errorf("%w: a compressed frame, which was not requested", errFrame)
	}
	payload = make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		if err == io.EOF { // ReadFull returns it unwrapped
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return head[0], payload, nil
}
