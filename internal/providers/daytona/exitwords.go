package daytona

import (
	"slices"

	"sbx/internal/sandbox"
)

// exitWords are the toolbox's exit code, HTTP statuses and error codes (Daytona
// toolbox API, as observed). A killed child is 137.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassTransport, "the command's shell was killed, its status was lost, or it could not be started: -1 says no more", "-1"),
		sandbox.TimeoutWords(sandbox.Certain, "the daemon killed the whole process group for the limit that was sent; its output is lost", "process_execution_timeout"),
		sandbox.TimeoutWords(sandbox.Probable, "the daemon's limit, or that of a proxy on the way; output is lost", "408", "request_timeout"),
		sandbox.ExitWords(sandbox.ClassTransport, "a proxy gave up; the command may run on", "504"),
		sandbox.ExitWords(sandbox.ClassTransport, "the session has ended, not the sandbox; the command's end was not seen", "410", "session_ended"),
		sandbox.ExitWords(sandbox.ClassInfra, "the daemon inside is dead, of memory or by a kill; the sandbox stays listed as started for minutes", "502"),
	)
}
