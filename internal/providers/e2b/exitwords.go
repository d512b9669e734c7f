package e2b

import (
	"slices"

	"sbx/internal/sandbox"
)

// exitWords are the end event's exit code, and the codes that end a Connect stream (E2B
// envd, as observed). A death by signal has exit code -1 and its name in the
// status, which is what to classify: "signal: killed". A child's death that a
// shell passes on is 137.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassKilledUnknown, "-1 stands for any signal; the status names it", "-1"),
		sandbox.TimeoutWords(sandbox.Probable, "the limit that was sent with the call; envd ends the program alone, what it started may run on", "deadline_exceeded"),
		sandbox.ExitWords(sandbox.ClassTransport, "the stream was ended, not the program: it may run on", "canceled", "aborted"),
		sandbox.ExitWords(sandbox.ClassTransport, "no such process any more, and nobody saw its end", "not_found"),
		sandbox.ExitWords(sandbox.ClassLauncher, "envd did not start it", "invalid_argument", "unauthenticated", "permission_denied", "failed_precondition", "unimplemented"),
		sandbox.ExitWords(sandbox.ClassInfra, "envd or the way to it failed", "internal", "unknown", "unavailable", "data_loss", "resource_exhausted"),
		sandbox.ExitWords(sandbox.ClassInfra, "the host answers for a sandbox that is gone, or for one in which envd is dead: its text tells which", "502"),
	)
}
