package e2b

import (
	"encoding/base64"
	"maps"
	"net/http"
	"strconv"

	"sbx/internal/httpx"
)

// envdPort is where envd listens in every sandbox.
const envdPort = 49983

// toHost addresses a request to envd of one sandbox.
func (c *Client) toHost(r httpx.Request, id, token string) httpx.Request {
	if c.sandboxURL == "" {
		domain := c.domain
		if own, ok := c.domains.Load(id); ok {
			domain, _ = own.(string)
		}
		host := strconv.Itoa(envdPort) + "-" + id + "." + domain
		if stable(domain) {
			host = "sandbox." + domain
		}
		r.URL = "https://" + host + r.Path
	}
	h := http.Header{}
	maps.Copy(h, r.Header)
	h.Set(c.dialect.header+"-Sandbox-Id", id)
	h.Set(c.dialect.header+"-Sandbox-Port", strconv.Itoa(envdPort))
	if token != "" {
		h.Set("X-Access-Token", token)
	}
	r.Header, r.OneSandbox = h, true
	return r
}

// asUser is the Linux user that commands run as: older envds require one.
func asUser() string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:")) }
