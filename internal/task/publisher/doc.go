// Package publisher publishes a task's work: by git to a remote with a fence, or by the
// operator's own command on this host. It implements task.Publisher with the package
// publish, and keeps bundles in the state directory.
//
// It decides nothing about tasks: the package task decides when the gate is passed.
package publisher
