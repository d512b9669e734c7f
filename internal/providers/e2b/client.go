package e2b

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// Client is one profile of E2B or of a cloud that speaks its API.
type Client struct {
	name       string
	dialect    dialect
	domain     string
	sandboxURL string // one address for all sandboxes; "" = by domain
	template   string
	legacy     bool // ids come in two parts
	now        func() time.Time
	api        *httpx.Client
	hosts      *httpx.Client
	domains    sync.Map // id -> the domain of a sandbox whose cluster is not the account's
}

var (
	_ providers.Provider           = (*Client)(nil)
	_ providers.LogReader          = (*Client)(nil)
	_ providers.UsageHistoryReader = (*Client)(nil)
	_ providers.ProcessLister      = (*Client)(nil)
	_ providers.UsageReader        = (*Client)(nil)
	_ providers.Launcher           = (*Client)(nil)
	_ providers.Commander          = (*Client)(nil)
	_ providers.Prober             = (*Client)(nil)
	_ providers.EventReader        = (*Client)(nil)
	_ providers.ExitReader         = (*Client)(nil)
	_ providers.Verifier           = (*Client)(nil)
	_ providers.Checker            = (*Client)(nil)
	_ providers.Clock              = (*Client)(nil)
	_ providers.Explainer          = (*Client)(nil)
	_ providers.QuotaReader        = (*Novita)(nil)
)

// Name is the profile's name.
func (c *Client) Name() string { return c.name }

// Type is "e2b" or "novita".
func (c *Client) Type() string { return c.dialect.name }

// Close lets idle connections go.
func (c *Client) Close() {
	c.api.Close()
	c.hosts.Close()
}

// WhyNot says why an ability is missing.
func (c *Client) WhyNot(ability string) string {
	switch ability {
	case "stats":
		return "the API counts what runs now, and no more"
	case "quota":
		return "the API shows no limits of the account"
	case "activity":
		return "a sandbox's life depends on its time limit alone; nobody counts its activity"
	case "records":
		return "the provider's own list is all there is"
	case "sweep":
		return "nothing of it runs on this machine"
	}
	return ""
}

// header makes the headers of a client; an empty value is left out.
func header(name, value string) http.Header {
	if value == "" {
		return http.Header{}
	}
	return http.Header{name: {value}}
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

// absent says that a route is not there: clones lack some of them.
func absent(err error) bool {
	switch httpx.Status(err) {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	}
	return false
}
