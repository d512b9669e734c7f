package fleet

import (
	"sbx/internal/fault"
	"sbx/internal/providers"
)

// checkLogParts is fault.KindUnsupported for a part of a log that a provider does not have.
func checkLogParts(m *member, q providers.LogQuery) error {
	var previous, container bool
	if r, ok := providers.As[providers.LogPartReader](m.Provider); ok {
		previous, container = r.ReadsLogParts()
	}
	switch {
	case q.Previous && !previous:
		return fault.New(fault.KindUnsupported, "a provider of type %s has no log of an earlier run", m.Provider.Type())
	case q.Container != "" && !container:
		return fault.New(fault.KindUnsupported, "a sandbox of type %s has one log, not one for each container", m.Provider.Type())
	}
	return nil
}
