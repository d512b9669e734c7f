package providers

import (
	"context"
	"time"

	"sbx/internal/sandbox"
)

// Verifier looks for the proof of an end that Get alone does not give: an API
// may say 404 while the machine runs on (DESIGN section 2, Ending).
type Verifier interface {
	// VerifyEnd looks once, after Get has shown the end. True ends the wait as
	// verified, with the evidence; anything else is asked again until the wait
	// is over, and then the end counts as accepted, not as verified. It changes
	// nothing.
	VerifyEnd(ctx context.Context, id string, e EndQuery) (Proof, error)
}

// EndQuery is what is known when an end shall be proved.
type EndQuery struct {
	Delete bool      // nothing may be left of it
	Since  time.Time // when Get first showed the end, by the fleet's clock
	Now    time.Time
	Asked  error // what Terminate returned; nil = the request was accepted
}

// Proof is one look for an end.
type Proof struct {
	Ended    sandbox.Verdict
	Reason   string // why it is not True: "the host still answers"
	Evidence []sandbox.Evidence
}
