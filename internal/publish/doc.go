// Package publish makes the work of a finished task public from this host, and prevents
// that after a stop.
//
// Each task has one fence ref on the remote, refs/sbx/fence/<task>. Publishing is one
// atomic push that moves the branch and creates the fence ref; stopping creates the same
// ref. The first to create it wins, and the remote itself rejects the other push
// completely, however long a publisher was suspended before. The state of the remote is the
// only evidence of an outcome.
//
// The package runs the host's git and the operator's own publish command. Providers, stores
// and the decision whether a task may be published do not belong here, and no credential
// leaves it in an error, a marker or an argument of a process.
package publish
