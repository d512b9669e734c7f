// Package task launches work in sandboxes and brings each task to exactly one end: it
// assigns, follows, retries, stops and publishes attempts, and takes over the tasks of dead
// processes.
//
// The rules are pure functions on a Task (machine.go, facts.go, retry.go). Each change is
// one compare-and-swap of the stored row, so that exactly one of a concurrent stop,
// timeout, publication and takeover wins. A task ends only when every sandbox that was made
// for it was seen to be gone. The Runner applies the rules; each phase has a file:
// begin.go, follow.go, publish.go, finish.go.
//
// Wire formats, SQL, git and output do not belong here: the package declares the interfaces
// that it needs.
package task
