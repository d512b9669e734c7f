package wiretest

import (
	"net/http"
	"time"
)

// Fault is one way in which an answer goes wrong. What it answers is held against
// no contract: it is wrong by design.
type Fault struct {
	Route string // Route.Name; "" = every route
	// Contains must stand in the path or query: one sandbox's id, a page token.
	Contains string
	// Past is a route that must be called first, after the fault was planted: an API
	// that breaks once it has accepted what was asked.
	Past  string
	After int // requests that fit and are let pass first
	Every int // of those behind them it takes each n-th alone; 0 = each
	Times int // requests that it takes; 0 = all

	Delay   time.Duration // before anything else
	Status  int           // answers with this instead of asking the route
	Header  map[string]string
	Body    string // with Status 0 it replaces the route's own body
	Trouble Trouble
	// HeaderFunc gives more headers for each answer.
	HeaderFunc func() map[string]string
	// Flood is how many bytes of FloodOf come in place of a body, with its Length told or
	// not. Server.Flooded counts what was taken.
	Flood   int64
	FloodOf byte
	Length  bool
	// Forget is a query name that the route does not get to see. A page token
	// that is forgotten gives the first page again, and its token with it.
	Forget string
	// Other is the id that the route sees where Contains, a whole id, stands in its
	// path: the API answers about another object than was asked for.
	Other string
	// Edit changes the body of the route's own answer.
	Edit func(body []byte) []byte
	// Late lets the route do its work first: the effect holds, and only the
	// answer is replaced or lost.
	Late bool

	seen int
	from int // how many calls had come when it was planted
}

// Trouble is what happens to the connection.
type Trouble string

// The kinds of trouble. With Late, each comes after the route has done its work.
const (
	TroubleNone     Trouble = ""
	TroubleHang     Trouble = "hang"      // no header ever comes
	TroubleHangBody Trouble = "hang_body" // headers and half of the body, then nothing
	TroubleReset    Trouble = "reset"     // the connection closes without an answer, over TCP with RST
	TroubleTruncate Trouble = "truncate"  // headers promise more than comes
	TroubleHuge     Trouble = "huge"      // 50 MB of spaces before the answer, which is good JSON all the same
	TroubleDrip     Trouble = "drip"      // a byte now and then, for ever
)

// The bad answers that every API gives one day.

// Status answers with a status and an empty JSON object.
func Status(status int) Fault { return Fault{Status: status, Body: "{}"} }

// TooMany is a 429 with headers.
func TooMany(header map[string]string) Fault {
	return Fault{Status: http.StatusTooManyRequests, Header: header, Body: `{"message":"slow down"}`}
}

// HTML is a page of somebody's portal.
func HTML() Fault {
	return Fault{Status: http.StatusOK, Header: map[string]string{"Content-Type": "text/html"}, Body: "<!doctype html><title>Sign in</title>"}
}

// Garbage is JSON that is none.
func Garbage() Fault { return Fault{Status: http.StatusOK, Body: `{"items": [{"id": 7, "state"`} }

// Redirect points elsewhere.
func Redirect(to string) Fault {
	return Fault{Status: http.StatusFound, Header: map[string]string{"Location": to}}
}
