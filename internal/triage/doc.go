// Package triage says what is wrong with a sandbox and why: log patterns, usage
// patterns, red flags, stuck reasons, how an exit is to be read, and causes
// ranked by their evidence.
//
// It holds pure rules. Samples, log lines, history, thresholds and the current
// time are handed in, so the same rules serve list, inspect, top, the drill and
// recorded incidents. Missing data makes a verdict unknown, never false and
// never true. No provider, no clock, no file, no printing and no state enters
// this room.
package triage
