// Package publish makes the work of a finished task public from this host, and
// keeps it from becoming public after a stop.
//
// Each task has one fence ref on the remote, refs/sbx/fence/<task>. Publishing is
// one atomic push that moves the branch and creates the fence ref; stopping
// creates the same ref. Whoever creates it first wins and the loser is rejected
// whole, by the remote itself, however long a publisher was frozen before its
// push. What the remote holds is the only evidence of an outcome.
//
// The room runs the host's git and the user's own publish command. No provider,
// no store and no decision about whether a task may be published enters it, and
// no credential leaves it in an error, a marker or an argument of a process.
package publish
