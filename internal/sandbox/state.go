package sandbox

// State is the state of a sandbox in the terms of sbx. The provider's own state is in
// Sandbox.RawState.
type State string

// The closed list of states.
const (
	StateProvisioning State = "provisioning"
	StateRunning      State = "running"
	StatePaused       State = "paused"
	StateStopped      State = "stopped"
	StateTerminating  State = "terminating"
	StateTerminated   State = "terminated"
	StateFailed       State = "failed"
	StateUnknown      State = "unknown"
)

// States lists every state, in the order of a sandbox's life cycle.
func States() []State {
	return []State{
		StateProvisioning, StateRunning, StatePaused, StateStopped,
		StateTerminating, StateTerminated, StateFailed, StateUnknown,
	}
}

// ParseState parses a state of the closed list; false for any other word.
func ParseState(word string) (State, bool) {
	for _, s := range States() {
		if string(s) == word {
			return s, true
		}
	}
	return StateUnknown, false
}

// Ended reports whether nothing of the sandbox runs and nothing will. `stopped` alone is no
// end: it is one only where a stop was intended.
func (s State) Ended() bool { return s == StateTerminated || s == StateFailed }

// Verdict is an answer that may be unknown. Unknown is never read as false.
type Verdict string

// The three verdicts, JSON strings so that "unknown" cannot be mistaken for false.
const (
	True    Verdict = "true"
	False   Verdict = "false"
	Unknown Verdict = "unknown"
)

// Negated is the verdict of the opposite question; what is unknown stays unknown.
func (v Verdict) Negated() Verdict {
	if v == True || v == False {
		return VerdictOf(v == False)
	}
	return Unknown
}

// VerdictOf converts a known answer.
func VerdictOf(known bool) Verdict {
	if known {
		return True
	}
	return False
}

// AgeSource is the timestamp from which an age was computed.
type AgeSource string

// The sources of an age, best first.
const (
	AgeCreatedAt AgeSource = "created_at"
	AgeStartedAt AgeSource = "started_at"
	AgeFirstSeen AgeSource = "first_seen"
	AgeEndingAt  AgeSource = "ending_at" // of Ending alone
	AgeUnknown   AgeSource = "unknown"
)

// Enforcement is how the memory limit of a local sandbox is enforced.
type Enforcement string

// The closed list of enforcements.
const (
	EnforcementCgroup2 Enforcement = "cgroup2"
	EnforcementCgroup1 Enforcement = "cgroup1"
	EnforcementHybrid  Enforcement = "hybrid"
	EnforcementScope   Enforcement = "systemd-scope"
	EnforcementWatch   Enforcement = "watchdog"
	EnforcementNone    Enforcement = "none"
)

// Hard reports whether the kernel itself refuses memory beyond the limit, for the whole tree
// and from the program's start.
func (e Enforcement) Hard() bool {
	switch e {
	case EnforcementCgroup2, EnforcementCgroup1, EnforcementHybrid, EnforcementScope:
		return true
	case EnforcementWatch, EnforcementNone:
		return false
	}
	return false
}
