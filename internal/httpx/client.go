package httpx

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"sbx/internal/fault"
)

// Timers and caps (DESIGN section 3, Timers; ACCEPTANCE names the accidents).
const (
	DefaultTimeout = 10 * time.Second // of one request, until its answer has been read
	DefaultStall   = 10 * time.Second // of a stream that brings no byte
	DefaultMaxBody = 16 << 20         // bytes of one answer
	DefaultTries   = 3                // of one idempotent request, the first one included
)

// Net is what a client takes from the process instead of reading it ambiently.
// Zero values mean the system's own.
type Net struct {
	Now    func() time.Time
	Lookup func(key string) (string, bool) // environment: proxies, SSL_CERT_FILE
	// Dial opens connections; tests hand in one, so that timeouts run in
	// virtual time. A client with a Dial uses no proxy.
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	Trace   func(line string) // one line for each request and answer (-v); nil = silent
	Timeout time.Duration     // of one request; 0 = DefaultTimeout
	Agent   string            // the User-Agent header
}

// Options say how to talk to one API.
type Options struct {
	Profile string // in errors
	Base    string // scheme, host and path prefix: https://api.e2b.app
	Header  http.Header
	Secrets []string // never shown, wherever they turn up
	// Explain reads a provider's error answer: the message and the machine's
	// word for it (its code), both "" when the body is not one. Nil = the
	// common spellings {"message"}, {"error":{"code","message"}}, {"detail"}.
	Explain func(status int, body []byte) (code, message string)
	// Gone says that the API documents 410 for what existed. Elsewhere nobody but
	// something on the way answers it, and it proves nothing: fault.KindUnavailable.
	Gone    bool
	Stall   time.Duration // 0 = DefaultStall
	MaxBody int64         // bytes; 0 = DefaultMaxBody
	Tries   int           // 0 = DefaultTries
	Rate    float64       // requests per second to begin with; 0 = 150
	Burst   int           // 0 = 600
}

// Request is one call.
type Request struct {
	Op     string // what is being done, for errors: "get abc"
	Method string // "" = GET
	Path   string // below Options.Base; Path() escapes its parts
	URL    string // an absolute address instead of Base and Path
	Query  url.Values
	Header http.Header // added to Options.Header; an empty value removes one
	JSON   any         // the body as JSON; nil = none
	Body   []byte      // the body as it is, with Header's Content-Type
	// Again allows repeating a request whose effect is the same when it is
	// sent twice. GET, HEAD and DELETE are repeated without it: DELETE only
	// when nothing shows that it was received (no connection, 429). A POST is repeated
	// without it after a 429 that says when.
	Again bool
	// Once forbids repeating, also of a GET.
	Once    bool
	Timeout time.Duration // 0 = that of the client
	MaxBody int64         // 0 = that of the client
	// OneSandbox says that something inside one sandbox answers, or a proxy in front of
	// it: what goes wrong is fault.Error.OneSandbox.
	OneSandbox bool
}

// scoped marks the fault of a request that one sandbox answers.
func (r Request) scoped(err error) error {
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

// SkewTolerated is how far two clocks may be apart before ages mislead.
const SkewTolerated = 30 * time.Second
