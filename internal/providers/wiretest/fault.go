package wiretest

import "time"

// Fault is one way in which an answer goes wrong.
type Fault struct {
	Route string // Route.Name; "" = every route
	// Contains must stand in the path or query: one sandbox's id, a page token.
	Contains string
	After    int // requests that fit and are let pass first
	Times    int // requests that it takes; 0 = all

	Delay   time.Duration // before anything else
	Status  int           // answers with this instead of asking the route
	Header  map[string]string
	Body    string // with Status 0 it replaces the route's own body
	Trouble Trouble
	// Late lets the route do its work first: the effect holds, and only the
	// answer is replaced or lost.
	Late bool

	seen int
}

// Trouble is what happens to the connection.
type Trouble string

// The kinds of trouble. With Late, each comes after the route has done its work.
const (
	TroubleNone     Trouble = ""
	TroubleHang     Trouble = "hang"      // no header ever comes
	TroubleHangBody Trouble = "hang_body" // headers and half of the body, then nothing
	TroubleReset    Trouble = "reset"     // the connection closes without an answer
	TroubleTruncate Trouble = "truncate"  // headers promise more than comes
	TroubleHuge     Trouble = "huge"      // 50 MB of JSON
	TroubleDrip     Trouble = "drip"      // a byte now and then, for ever
)
