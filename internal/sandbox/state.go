package sandbox

// State is where a sandbox stands in its life, in the words of sbx. The
// provider's own word is kept beside it in Sandbox.RawState.
type State string

// The closed list of states (DESIGN section 3).
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

// States lists every state, in the order of a sandbox's life.
func States() []State {
	return []State{
		StateProvisioning, StateRunning, StatePaused, StateStopped,
		StateTerminating, StateTerminated, StateFailed, StateUnknown,
	}
}

// ParseState reads one of the closed list; false for any other word.
func ParseState(word string) (State, bool) {
	for _, s := range States() {
		if string(s) == word {
			return s, true
		}
	}
	return StateUnknown, false
}

// Ended says that nothing of the sandbox runs any more and nothing will.
// `stopped` is not an end by itself: it is one only where the plan said stop.
func (s State) Ended() bool { return s == StateTerminated || s == StateFailed }

// Verdict is an answer that may be missing. Unknown is never read as false.
type Verdict string

// The three verdicts, spelled as JSON strings so that no reader mistakes
// "unknown" for false.
const (
	True    Verdict = "true"
	False   Verdict = "false"
	Unknown Verdict = "unknown"
)

// VerdictOf turns a known answer into a verdict.
func VerdictOf(known bool) Verdict {
	if known {
		return True
	}
	return False
}

// AgeSource says which timestamp an age was counted from.
type AgeSource string

// The sources of an age, best first.
const (
	AgeCreatedAt AgeSource = "created_at"
	AgeStartedAt AgeSource = "started_at"
	AgeFirstSeen AgeSource = "first_seen"
	AgeUnknown   AgeSource = "unknown"
)

// Enforcement names what holds a local sandbox inside its memory limit.
type Enforcement string

// The closed list of enforcements. Hard reports which of them the kernel
// guarantees.
const (
	EnforcementCgroup2 Enforcement = "cgroup2"
	EnforcementCgroup1 Enforcement = "cgroup1"
	EnforcementHybrid  Enforcement = "hybrid"
	EnforcementScope   Enforcement = "systemd-scope"
	EnforcementWatch   Enforcement = "watchdog"
	EnforcementNone    Enforcement = "none"
)

// Hard says that the kernel itself refuses memory beyond the limit, for the
// whole tree and from the program's first byte.
func (e Enforcement) Hard() bool {
	switch e {
	case EnforcementCgroup2, EnforcementCgroup1, EnforcementHybrid, EnforcementScope:
		return true
	case EnforcementWatch, EnforcementNone:
		return false
	}
	return false
}
