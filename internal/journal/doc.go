// Package journal records what a destructive run is about to do and its results: one file
// per run, one line per entry, written before the action and durable when Append returns.
//
// The entries of a run are chained by their hashes, and a run begins with the last hash of
// the run before it, so that a changed, dropped or added line shows. The packages that
// write entries define their meaning; sandboxes, providers and decisions do not belong
// here.
package journal
