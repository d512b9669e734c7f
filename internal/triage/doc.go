// Package triage diagnoses a sandbox: log patterns, usage patterns, red flags, reasons
// for being stuck, the classification of an exit, and causes ranked by evidence.
//
// It holds pure rules. Samples, log lines, history, thresholds and the current time are
// parameters, so the same rules serve list, inspect, top, the drill and recorded
// incidents. Missing data makes a verdict unknown, never false and never true. The
// package has no provider, clock, file, output or state.
package triage
