package httpx

import (
	"net/http"
	"strings"

	"sbx/internal/fault"
)

// mostRedirects is how many are followed, on the way of one request.
const mostRedirects = 3

// redirected refuses a way to another host or out of TLS: the credentials and
// what is asked belong to one server.
func redirected(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case !strings.EqualFold(req.URL.Host, first.URL.Host), first.URL.Scheme == "https" && req.URL.Scheme != "https":
		return fault.New(fault.KindUnavailable, "%w to %s://%s, which is not followed", errRedirect, req.URL.Scheme, req.URL.Host).
			WithHint("is the url right? credentials go to the configured host alone")
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return fault.New(fault.KindUnavailable, "%w a %s, which is not followed", errRedirect, first.Method).
			WithHint("is the url right, https:// and host included?")
	case len(via) > mostRedirects:
		return fault.New(fault.KindUnavailable, "%w more than %d times", errRedirect, mostRedirects)
	}
	return nil
}
