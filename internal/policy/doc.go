// Package policy is what wraps a verb on one provider beyond a single request:
// the circuit breaker of one process, and the one that processes and hosts share
// through a store they hand in.
//
// It knows no provider, no verb and no database, and judges no exit: the caller says
// what counts. Retries, pace and deadlines of one request belong to httpx, the
// deadline of no progress and verification to fleet.
package policy
