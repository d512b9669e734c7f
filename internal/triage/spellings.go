package triage

import (
	"slices"
	"strings"

	"sbx/internal/sandbox"
)

// Spelling is what one provider writes where others give an exit code: an error
// code, an HTTP status, the state of a session, or a number that is no program's
// own.
type Spelling struct {
	Provider   string // its type
	Raw        string // lower case
	Class      sandbox.Class
	Cause      sandbox.Cause
	Confidence sandbox.Confidence
	Says       string // what it proves, and what it leaves open
}

// ReadSpelling looks a provider's word up; letter case and a leading "HTTP" do
// not count. A word of one provider means nothing for another: `aborted` is a
// session of Vercel, a code of E2B, and a signal everywhere else.
func ReadSpelling(provider, raw string) (Spelling, bool) {
	word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(raw)), "http ")
	all := Spellings()
	i := slices.IndexFunc(all, func(s Spelling) bool { return s.Provider == provider && s.Raw == word })
	if i < 0 {
		return Spelling{}, false
	}
	return all[i], true
}

// Spellings lists every provider's own. Signals, exit codes and "exit code -9" are
// not among them: they read alike everywhere, see ParseExit.
func Spellings() []Spelling {
	var all []Spelling
	for _, p := range []struct {
		types []string
		rows  []Spelling
	}{
		{[]string{"e2b", "novita"}, ofEnvd()},
		{[]string{"daytona"}, ofDaytona()},
		{[]string{"vercel"}, ofVercel()},
		{[]string{"monotask", "cloudflare"}, ofCloudflare()},
	} {
		for _, t := range p.types {
			for _, s := range p.rows {
				s.Provider = t
				all = append(all, s)
			}
		}
	}
	return all
}

// open is a row that names no cause.
func open(class sandbox.Class, says string, words ...string) []Spelling {
	rows := make([]Spelling, len(words))
	for i, w := range words {
		rows[i] = Spelling{Raw: w, Class: class, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown, Says: says}
	}
	return rows
}

func timedOut(confidence sandbox.Confidence, says string, words ...string) []Spelling {
	rows := open(sandbox.ClassTimeout, says, words...)
	for i := range rows {
		rows[i].Cause, rows[i].Confidence = sandbox.CauseTimeout, confidence
	}
	return rows
}

// ofEnvd: the end event's exit code, and the codes that end a Connect stream (E2B
// envd, as observed). A death by signal has exit code -1 and its name in the
// status, which is what to classify: "signal: killed". A child's death that a
// shell passes on is 137.
func ofEnvd() []Spelling {
	return slices.Concat(
		open(sandbox.ClassKilledUnknown, "-1 stands for any signal; the status names it", "-1"),
		timedOut(sandbox.Probable, "the limit that was sent with the call; envd ends the program alone, what it started may run on", "deadline_exceeded"),
		open(sandbox.ClassTransport, "the stream was ended, not the program: it may run on", "canceled", "aborted"),
		open(sandbox.ClassTransport, "no such process any more, and nobody saw its end", "not_found"),
		open(sandbox.ClassLauncher, "envd did not start it", "invalid_argument", "unauthenticated", "permission_denied", "failed_precondition", "unimplemented"),
		open(sandbox.ClassInfra, "envd or the way to it failed", "internal", "unknown", "unavailable", "data_loss", "resource_exhausted"),
		open(sandbox.ClassInfra, "the host answers for a sandbox that is gone, or for one in which envd is dead: its text tells which", "502"),
	)
}

// ofDaytona: the toolbox's exit code, HTTP statuses and error codes (Daytona
// toolbox API, as observed). A killed child is 137.
func ofDaytona() []Spelling {
	return slices.Concat(
		open(sandbox.ClassTransport, "the command's shell was killed, its status was lost, or it could not be started: -1 says no more", "-1"),
		timedOut(sandbox.Certain, "the daemon killed the whole process group for the limit that was sent; its output is lost", "process_execution_timeout"),
		timedOut(sandbox.Probable, "the daemon's limit, or that of a proxy on the way; output is lost", "408", "request_timeout"),
		open(sandbox.ClassTransport, "a proxy gave up; the command may run on", "504"),
		open(sandbox.ClassTransport, "the session has ended, not the sandbox; the command's end was not seen", "410", "session_ended"),
		open(sandbox.ClassInfra, "the daemon inside is dead, of memory or by a kill; the sandbox stays listed as started for minutes", "502"),
	)
}

// ofVercel: a command without an exit code takes the state of its session; codes
// of the stream and of errors (Vercel Sandbox API). A time limit, a kill and the
// kernel all show as 137, which ExitFacts.Ran and Limit may tell apart.
func ofVercel() []Spelling {
	stopped := open(sandbox.ClassStopped, "its session was stopped under it, by somebody or by its time limit", "stopped")
	stopped[0].Cause, stopped[0].Confidence = sandbox.CauseStopped, sandbox.Hint
	return slices.Concat(
		stopped,
		open(sandbox.ClassInfra, "its session was given up by the platform", "aborted", "failed"),
		open(sandbox.ClassTransport, "its session is between two states; the end was not seen", "stopping", "snapshotting", "sandbox_stopping", "sandbox_snapshotting", "422"),
		open(sandbox.ClassGone, "its session has stopped; the session's record says when", "sandbox_stopped", "410"),
		open(sandbox.ClassGone, "the sandbox cannot be resumed: its snapshot is not there", "snapshot_not_found"),
		open(sandbox.ClassTransport, "the stream broke off; the command may run on", "sandbox_stream_closed", "stream_ended_early"),
	)
}

// ofCloudflare: error codes of the sandbox SDK, and MonoTask's states, which are
// no signals.
func ofCloudflare() []Spelling {
	return slices.Concat(
		open(sandbox.ClassGone, "its session or container was ended under it", "session_terminated", "session_destroyed", "410"),
		open(sandbox.ClassTransport, "no such process any more, and nobody saw its end", "process_not_found"),
		open(sandbox.ClassTransport, "the connection failed; the command may run on", "rpc_transport_error", "operation_interrupted"),
		open(sandbox.ClassInfra, "no container answered", "container_unavailable", "503"),
		open(sandbox.ClassUnknown, "a state, not an exit: nobody says how the program ended", "terminated", "failed"),
	)
}
