package monotask

import (
	"slices"

	"sbx/internal/sandbox"
)

// exitWords are the error codes of the sandbox SDK, and MonoTask's states, which
// are no signals.
func exitWords() []sandbox.ExitWord {
	return slices.Concat(
		sandbox.ExitWords(sandbox.ClassGone, "its session or container was ended under it", "session_terminated", "session_destroyed", "410"),
		sandbox.ExitWords(sandbox.ClassTransport, "no such process any more, and nobody saw its end", "process_not_found"),
		sandbox.ExitWords(sandbox.ClassTransport, "the connection failed; the command may run on", "rpc_transport_error", "operation_interrupted"),
		sandbox.ExitWords(sandbox.ClassInfra, "no container answered", "container_unavailable", "503"),
		sandbox.ExitWords(sandbox.ClassUnknown, "a state, not an exit: nobody says how the program ended", "terminated", "failed"),
	)
}
