package vercel

import (
	"slices"

	"sbx/internal/sandbox"
)

// exitWords are the states of a session, which a command without an exit code takes,
// and the codes of the stream and of errors (Vercel Sandbox API). A time limit, a kill and the
// kernel all show as 137, which triage.ExitFacts.Ran and Limit may tell apart.
func exitWords() []sandbox.ExitWord {
	stopped := sandbox.ExitWords(sandbox.ClassStopped, "its session was stopped under it, by somebody or by its time limit", "stopped")
	stopped[0].Cause, stopped[0].Confidence = sandbox.CauseStopped, sandbox.Hint
	return slices.Concat(
		stopped,
		sandbox.ExitWords(sandbox.ClassInfra, "its session was given up by the platform", "aborted", "failed"),
		sandbox.ExitWords(sandbox.ClassTransport, "its session is between two states; the end was not seen", "stopping", "snapshotting", "sandbox_stopping", "sandbox_snapshotting", "422"),
		sandbox.ExitWords(sandbox.ClassGone, "its session has stopped; the session's record says when", "sandbox_stopped", "410"),
		sandbox.ExitWords(sandbox.ClassGone, "the sandbox cannot be resumed: its snapshot is not there", "snapshot_not_found"),
		sandbox.ExitWords(sandbox.ClassTransport, "the stream broke off; the command may run on", "sandbox_stream_closed", "stream_ended_early"),
	)
}
