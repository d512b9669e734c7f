// Package policy holds the circuit breakers around the calls to one provider: that of one
// process, and the one that processes and hosts share through a store that is handed in.
//
// Providers, verbs, databases and the judgement of exits do not belong here: the caller
// says what counts. Retries, pace and deadlines of one request belong to httpx, the
// no-progress deadline and verification to fleet.
package policy
