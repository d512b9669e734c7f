// Package policy is what wraps a verb on one provider beyond a single request:
// the circuit breaker, and where its state is kept.
//
// It knows no provider and no verb. Retries, pace and deadlines of one request
// belong to httpx, the deadline of no progress and verification to fleet.
package policy
