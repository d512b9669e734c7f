package triage

import (
	"time"

	"sbx/internal/sandbox"
)

// matter is what a theory looks at.
type matter struct {
	s   sandbox.Sandbox
	sig Signals
	t   Thresholds
	now time.Time
}

// theory is one cause of the runbook and its symptoms.
type theory struct {
	id       string
	cause    sandbox.Cause
	title    string
	symptoms func(matter) []Symptom
	hintOnly bool // its signs are too weak for more
}

// theories lists the runbook's five causes and those that a process on its own
// adds. Weights are opinions, kept here in one place: 3 is the sign that names
// the cause, 1 one that others share. Of equals in a ranking the earlier stands
// first.
func theories() []theory {
	return []theory{
		{id: "memory_leak", cause: sandbox.CauseLeak, title: "memory leak", symptoms: leak},
		{id: "infinite_loop", cause: sandbox.CauseBusyLoop, title: "infinite loop in the agent's code (cause 1)", symptoms: loop},
		{id: "external_hang", cause: sandbox.CauseHungIO, title: "external service does not answer (cause 2)", symptoms: hang},
		{id: "silent", cause: sandbox.CauseSilent, title: "alive, and neither works nor waits for the outside", symptoms: quiet},
		{id: "cleanup_not_running", cause: sandbox.CauseOrphan, title: "cleanup job does not run (cause 3)", symptoms: cleanup},
		{id: "state_corruption", cause: sandbox.CauseOrphan, title: "records and reality differ (cause 4)", symptoms: corruption},
		{id: "resource_exhaustion", cause: sandbox.CauseUnknown, title: "the provider's resources are used up (cause 5)", symptoms: exhaustion},
		{id: "no_owner", cause: sandbox.CauseOrphan, title: "nothing owns it", symptoms: ownerless, hintOnly: true},
	}
}

func loop(m matter) []Symptom {
	return []Symptom{
		key(must(m.cpuAtLimit())), m.neverCompletes(), m.noErrors(), m.manyOperations(), m.noProgress(),
		key(m.logged("R39", 2, "recursion")), key(m.logged("R65", 2, "iterations")),
	}
}

// hang needs more than a resting processor: a machine that has just booted rests too.
func hang(m matter) []Symptom {
	return []Symptom{
		must(m.cpuAtRest("R71", 3)), key(must(m.silent("R72", 1))), key(m.lastCall()), key(m.waitsForPeer()),
		key(m.logged("R38", 2, "operation_timed_out")), key(m.logged("R76", 2, "request_timeout")),
	}
}

// leak takes a slope and the share of the limit: growth alone is a hint, since a
// program that has much room left may be filling a cache.
func leak(m matter) []Symptom {
	return []Symptom{
		key(must(m.memoryGrows())), m.fillsUp(),
		m.logged("R40", 2, "out_of_memory"), m.logged("R13", 1, "resource_warning"),
	}
}

// quiet needs a resting processor and silence, and tells itself from a hang by
// there being nothing outside to wait for.
func quiet(m matter) []Symptom {
	peer, call := m.waitsForPeer(), m.lastCall()
	nothing := Symptom{Row: "R50", Say: "waits for nothing outside", Weight: 3, Verdict: not(peer.Verdict), Evidence: m.waitEvidence()}
	if call.Verdict == sandbox.True && nothing.Verdict == sandbox.Unknown {
		nothing.Verdict = sandbox.False
	}
	return []Symptom{key(must(m.silent("R41", 2))), must(m.cpuAtRest("R50", 2)), nothing}
}

func cleanup(m matter) []Symptom {
	return []Symptom{m.oldOnesPile(), key(m.noCleanupSeen()), key(m.activeGrows()), key(m.logged("R56", 2, "cleanup_failed"))}
}

func corruption(m matter) []Symptom {
	return []Symptom{
		{Row: "R94", Say: "shown as running and does not exist", Weight: 3, Verdict: m.missing()},
		{Row: "R95", Say: "record and process disagree", Weight: 2, Verdict: not(m.sig.Agrees)},
		m.logged("R96", 2, "sandbox_not_found"),
	}
}

func exhaustion(m matter) []Symptom {
	return []Symptom{
		m.cannotCreate(), m.allProvisioning(), m.quotaRunsShort(),
		m.logged("R107", 3, "resource_limit"), m.logged("R111", 3, "sandbox_limit"),
	}
}

// ownerless rests on one sign that alone says little (R29).
func ownerless(m matter) []Symptom {
	f := noOwner(m.s, m.sig)
	if !m.running() {
		f.Verdict = sandbox.Unknown
	}
	return []Symptom{
		{Row: f.ID, Say: f.Say, Weight: 2, Key: true, Verdict: f.Verdict},
		{Row: "S2-17", Say: "shows no activity either", Weight: 1, Support: true, Verdict: not(m.lives())},
	}
}

func key(s Symptom) Symptom {
	s.Key = true
	return s
}

func must(s Symptom) Symptom {
	s.Must = true
	return s
}

// not turns a verdict round; Unknown, and the verdict nobody gave, stay
// Unknown.
func not(v sandbox.Verdict) sandbox.Verdict {
	switch v {
	case sandbox.True:
		return sandbox.False
	case sandbox.False:
		return sandbox.True
	case sandbox.Unknown:
	}
	return sandbox.Unknown
}
