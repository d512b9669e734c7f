package cleanup

import "strings"

// KeepReason is why a sandbox stays, as a word.
type KeepReason string

// All reasons. KeepNone stands for a sandbox that is selected.
const (
	KeepNone            KeepReason = ""
	KeepProtected       KeepReason = "protected"        // by label or configuration
	KeepNotSelected     KeepReason = "not_selected"     // a selector does not match
	KeepAgeUnknown      KeepReason = "age_unknown"      // no age, or one in the future
	KeepUnknown         KeepReason = "unknown"          // a selector cannot be evaluated
	KeepAgeLimit        KeepReason = "age_limit"        // its agent type may run longer
	KeepNotOwned        KeepReason = "not_owned"        // it has another owner
	KeepEnded           KeepReason = "ended"            // it has ended already
	KeepEnding          KeepReason = "ending"           // its end was requested already
	KeepPaused          KeepReason = "paused"           // its state would be lost
	KeepNeedsDelete     KeepReason = "needs_delete"     // only --delete would change it
	KeepStateUnknown    KeepReason = "state_unknown"    // the provider's word for its state is not known
	KeepAlive           KeepReason = "alive"            // it is active
	KeepActivityUnknown KeepReason = "activity_unknown" // nothing shows whether it is active
	KeepNotBroken       KeepReason = "answers"          // it is healthy, or its health is unknown
	KeepRefused         KeepReason = "refused"          // its provider would refuse its end
)

// Label is a reason in a word or two, for people: "not yours".
func (k KeepReason) Label() string {
	switch k {
	case KeepNotOwned:
		return "not yours"
	case KeepActivityUnknown:
		return "not judged"
	case KeepUnknown:
		return "a selector is not known"
	case KeepAgeLimit:
		return "may run longer"
	default:
		return strings.ReplaceAll(string(k), "_", " ")
	}
}

// KeepReasons lists all reasons for which a sandbox may stay.
func KeepReasons() []KeepReason {
	return []KeepReason{
		KeepProtected, KeepNotSelected, KeepAgeUnknown, KeepUnknown, KeepAgeLimit, KeepNotOwned, KeepEnded, KeepEnding, KeepPaused,
		KeepNeedsDelete, KeepStateUnknown, KeepAlive, KeepActivityUnknown, KeepNotBroken, KeepRefused,
	}
}
