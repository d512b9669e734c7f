// Package httpx is the one HTTP client of sbx. It sends credentials, limits every wait and the
// size of every answer, repeats requests that may be repeated, keeps to the rate that a
// provider allows, and converts statuses to faults. Its texts never contain a secret.
//
// No provider's paths, fields or meanings enter this package; a provider's client sets Options
// and Options.Explain.
package httpx

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"sbx/internal/fault"
)

// Timers and limits.
const (
	DefaultTimeout = 10 * time.Second // of one request, until its answer has been read
	DefaultStall   = 10 * time.Second // of a stream without a byte
	DefaultMaxBody = 16 << 20         // bytes of one answer
	DefaultTries   = 3                // of one idempotent request, with the first one
)

// Net is the environment of a client. Zero values mean the defaults of the system.
type Net struct {
	Now    func() time.Time
	Lookup func(key string) (string, bool) // environment: proxies, SSL_CERT_FILE
	// Dial opens connections; tests set it, so that timeouts run in virtual time. A client
	// with a Dial uses no proxy.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Trace   func(line string) // one line for each request and answer (-v); nil = silent
	Timeout time.Duration     // of one request; 0 = DefaultTimeout
	Agent   string            // the User-Agent header
}

// Options are those of one API.
type Options struct {
	Profile string // in errors
	Base    string // scheme, host and path prefix: https://api.e2b.app
	Header  http.Header
	Secrets []string // redacted in every text
	// Explain reads the code and the message of a provider's error answer, both "" when the
	// body has none. Nil = the common formats {"message"}, {"error":{"code","message"}},
	// {"detail"}.
	Explain func(status int, body []byte) (code, message string)
	// Gone says that the API documents 410 for an object that existed. For other APIs a 410
	// comes from a proxy and is no proof: fault.KindUnavailable.
	Gone    bool
	Stall   time.Duration // 0 = DefaultStall
	MaxBody int64         // bytes; 0 = DefaultMaxBody
	Tries   int           // 0 = DefaultTries
	Rate    float64       // requests per second at first; 0 = 150
	Burst   int           // 0 = 600
}

// Request is one call.
type Request struct {
	Op     string // the operation, for errors: "get abc"
	Method string // "" = GET
	Path   string // below Options.Base; Path() escapes its parts
	URL    string // an absolute address instead of Base and Path
	Query  url.Values
	Header http.Header // added to Options.Header; an empty value removes one
	JSON   any         // the body as JSON; nil = none
	Body   []byte      // the raw body, with Content-Type in Header
	// Idempotent allows repeating a request that has the same effect when it is sent twice.
	// Without it GET and HEAD are repeated, DELETE where it was not received (no connection,
	// 429), and POST after a 429 with a time.
	Again bool
	// Once forbids to repeat the request.
	Once    bool
	Timeout time.Duration // 0 = that of the client
	MaxBody int64         // 0 = that of the client
	// OneSandbox says that something inside one sandbox answers, or a proxy in front of it:
	// its errors are fault.Error.OneSandbox.
	OneSandbox bool
}

func (r Request) markScope(err error) error {
	f, ok := err.(*fault.Error) //nolint:errorlint // the outermost one is shown
	if !ok || !r.OneSandbox {
		return err
	}
	own := *f // several requests may share it
	own.OneSandbox = true
	return &own
}

// Response is an answer with a status of 2xx and its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// SkewTolerated is the difference of two clocks up to which ages are usable.
const SkewTolerated = 30 * time.Second
