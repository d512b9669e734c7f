package providers

import (
	"context"
	"time"

	"sbx/internal/sandbox"
)

// Verifier looks for the proof of an end that Get alone does not give: an API
// may say 404 while the machine runs on.
//
// A provider without it promises that what its own Get says of an end is the state of
// the machine itself, as the kernel tells it.
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
	// Request is the last request to end it that is known, of this process or an
	// earlier one; nil = none. After one that was not acknowledged the fleet takes no
	// absence for an end unless Proof.Independent says so.
	Request *sandbox.EndRequest
}

// Proof is one look for an end.
type Proof struct {
	Ended  sandbox.Verdict
	Reason string // why it is not True: "the host still answers"
	// Independent says that the proof rests on what an API that drops its record of a
	// running machine cannot make look like an end: the machine's own answer, its
	// node's list, or the end of the longest time that a machine may run.
	Independent bool
	Evidence    []sandbox.Evidence
}
