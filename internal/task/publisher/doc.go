// Package publisher is how a task's work becomes public: by git to a remote that
// keeps a fence, or by the operator's own command on this host. It joins what task
// declares with what publish can do, and keeps bundles in the state directory.
//
// It decides nothing about tasks: when the gate is passed is task's affair.
package publisher
