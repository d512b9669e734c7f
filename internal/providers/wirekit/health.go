package wirekit

import (
	"fmt"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// StateHealth is the health of a sandbox as far as its state says it: that of a running one is unknown.
func StateHealth(state sandbox.State, seen ...sandbox.Evidence) providers.Health {
	h := providers.Health{Verdict: sandbox.Unknown, Condition: providers.ConditionUnknown, Evidence: seen}
	switch state {
	case sandbox.StateProvisioning, sandbox.StateTerminating:
		h.Condition = providers.ConditionWait
	case sandbox.StatePaused, sandbox.StateStopped:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionResumable
	case sandbox.StateFailed, sandbox.StateTerminated:
		h.Verdict, h.Condition = sandbox.False, providers.ConditionRecreate
	case sandbox.StateRunning, sandbox.StateUnknown:
	}
	return h
}

// WithShell completes the health of a running sandbox by how a shell in it has ended. An image without a shell proves
// nothing.
func (b *Base) WithShell(h providers.Health, code int, err error) providers.Health {
	fact := b.Evidence("shell", "answers", "exec")
	switch {
	case err == nil && code == 0:
		h.Verdict, h.Condition = sandbox.True, providers.ConditionHealthy
	case err != nil:
		fact.Value = err.Error()
	default:
		fact.Value = fmt.Sprintf("exits with %d", code)
	}
	h.Evidence = append(h.Evidence, fact)
	return h
}
