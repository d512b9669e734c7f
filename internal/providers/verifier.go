package providers

import (
	"context"
	"time"

	"sbx/internal/sandbox"
)

// Verifier proves an end where Get alone is no proof: an API may answer 404 while the machine still runs.
//
// A provider without it guarantees that its Get has the state of the machine by the kernel.
type Verifier interface {
	// VerifyEnd checks once, after Get has shown the end, with at least one source that Get does not
	// use: the same route may answer wrongly again. True ends the wait as verified, with the
	// evidence; otherwise it is called again until the wait ends, and the end counts as accepted.
	// It changes nothing.
	VerifyEnd(ctx context.Context, id string, e EndQuery) (Proof, error)
}

// EndQuery is what is known about an end that is to be verified.
type EndQuery struct {
	Delete bool      // nothing may be left of the sandbox
	Since  time.Time // when Get first showed the end, by the fleet's clock
	Now    time.Time
	// Request is the last known request to end it, of this process or an earlier one; nil = none.
	// After one that was not acknowledged the fleet needs Proof.Independent.
	Request *sandbox.EndRequest
	// ExpiresAt is when the limit of the sandbox itself ends it, by its last read and this machine's
	// clock; zero = not known.
	ExpiresAt time.Time
}

// Proof is the result of one verification of an end.
type Proof struct {
	Ended  sandbox.Verdict
	Reason string // why Ended is not True: "the host still answers"; else what has to be known of the end, "" = nothing
	KeptBy string // what keeps it from its end: "its node n-1 is not ready"; "" = nothing is known
	// Independent says that the proof does not depend on the API's records, which may be dropped
	// while the machine runs: it rests on the machine's own answer, on its node's list, or on the
	// longest time that a machine may run.
	Independent bool
	// SameStore says that every source of the proof reads the store from which the API drops the record,
	// so that they agree also where the machine runs on: without an acknowledged request they prove nothing.
	SameStore bool
	// IndependentFrom is when the longest time that the machine may run makes the proof independent;
	// zero = not known, or it is.
	IndependentFrom time.Time
	Evidence        []sandbox.Evidence
}
