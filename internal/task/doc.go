// Package task launches work in sandboxes and brings each task to exactly one true
// end: it assigns, follows, retries, stops, publishes and takes over what a dead
// process left.
//
// The rules are pure functions on a Task (machine.go, retry.go). Each change is one
// compare-and-swap of the kept row, so that of a stop, a timeout, a publication and
// a takeover that meet exactly one wins. A task ends only when every sandbox that
// was made for it was seen to be gone.
//
// No provider's wire format, no SQL, no git and no output enters this room: it
// declares what it needs of them.
package task
