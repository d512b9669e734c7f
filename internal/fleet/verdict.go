package fleet

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Counts are the endings by outcome. Every outcome is present, also at 0, and their sum is
// Selected.
type Counts struct {
	Selected     int `json:"selected"`      // How many were selected.
	Verified     int `json:"verified"`      // Seen to have ended.
	AlreadyGone  int `json:"already_gone"`  // Ended before the request.
	Accepted     int `json:"accepted"`      // Accepted by the provider, and still in the old state when the wait was over.
	Stuck        int `json:"stuck"`         // In the state terminating for longer than the provider should need.
	Failed       int `json:"failed"`        // The request failed.
	Changed      int `json:"changed"`       // No longer what was selected when it was read again, so it was left alone.
	Skipped      int `json:"skipped"`       // Left alone, for the reason given.
	NotAttempted int `json:"not_attempted"` // Not reached before the run ended.
}

// Count counts endings by outcome. An unknown outcome counts as failed.
func Count(endings []sandbox.Ending) Counts {
	c := Counts{Selected: len(endings)}
	for _, e := range endings {
		*c.counterOf(e.Outcome)++
	}
	return c
}

// Of is the number of endings with an outcome.
func (c Counts) Of(o sandbox.Outcome) int { return *c.counterOf(o) }

// Add adds n of an outcome; the caller adapts Selected.
func (c *Counts) Add(o sandbox.Outcome, n int) { *c.counterOf(o) += n }

func (c *Counts) counterOf(o sandbox.Outcome) *int {
	switch o {
	case sandbox.OutcomeVerified:
		return &c.Verified
	case sandbox.OutcomeAlreadyGone:
		return &c.AlreadyGone
	case sandbox.OutcomeAccepted:
		return &c.Accepted
	case sandbox.OutcomeStuck:
		return &c.Stuck
	case sandbox.OutcomeChanged:
		return &c.Changed
	case sandbox.OutcomeSkipped:
		return &c.Skipped
	case sandbox.OutcomeNotAttempted:
		return &c.NotAttempted
	case sandbox.OutcomeFailed:
	}
	return &c.Failed
}

// Verdict is the error behind the exit code of a run; nil when everything ended. An
// interrupted run is canceled or timeout; accepted and stuck as the only trouble are
// KindUnverified; when all failed with one kind it is that kind; else KindPartial. Changed
// and skipped count only where the operator named the sandboxes.
func Verdict(endings []sandbox.Ending, named bool) error {
	var trouble []sandbox.Ending
	kinds := make(map[fault.Kind]int)
	for _, e := range endings {
		if kind := troubleKind(e, named); kind != fault.KindNone {
			trouble = append(trouble, e)
			kinds[kind]++
		}
	}
	if len(trouble) == 0 {
		return nil
	}
	kind := overallKind(kinds, len(trouble), len(endings))
	if len(endings) == 1 {
		return singleVerdict(trouble[0], kind)
	}
	err := fault.New(kind, "%d of %d sandboxes are not verified: %s", len(trouble), len(endings), summarizeTrouble(trouble))
	if hint := troubleHint(trouble); hint != "" {
		err.Hint = hint
	}
	err.Final = allSkipped(trouble)
	return err
}

// AllChanged is the error of a run by rule that has terminated nothing, since all that it selected has changed
// meanwhile; nil for any other. Its exit code must differ from that of a run that is done.
func AllChanged(endings []sandbox.Ending) error {
	if len(endings) == 0 || slices.ContainsFunc(endings, func(e sandbox.Ending) bool { return e.Outcome != sandbox.OutcomeChanged }) {
		return nil
	}
	return fault.New(fault.KindPartial, "nothing was terminated: all %d selected sandboxes have changed since they were selected", len(endings)).
		WithHint("the same command selects anew; what no longer fits its selectors stays")
}

// allSkipped reports whether all endings were left alone on purpose, so that the same command
// would end none of them.
func allSkipped(endings []sandbox.Ending) bool {
	return !slices.ContainsFunc(endings, func(e sandbox.Ending) bool {
		return e.Outcome != sandbox.OutcomeSkipped && e.Outcome != sandbox.OutcomeChanged
	})
}

// troubleKind is the kind of trouble of one ending; KindNone = none.
func troubleKind(e sandbox.Ending, named bool) fault.Kind {
	switch e.Outcome {
	case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
		return fault.KindNone
	case sandbox.OutcomeChanged, sandbox.OutcomeSkipped:
		if named {
			return fault.KindPartial
		}
		return fault.KindNone
	case sandbox.OutcomeAccepted, sandbox.OutcomeStuck:
		if kind := fault.KindOf(e.Err); kind == fault.KindCanceled || kind == fault.KindTimeout {
			return kind
		}
		return fault.KindUnverified
	case sandbox.OutcomeFailed, sandbox.OutcomeNotAttempted:
	}
	if e.Err == nil {
		return fault.KindUnknown
	}
	return fault.KindOf(e.Err)
}

func overallKind(kinds map[fault.Kind]int, trouble, all int) fault.Kind {
	for _, k := range []fault.Kind{fault.KindCanceled, fault.KindTimeout} {
		if kinds[k] > 0 {
			return k
		}
	}
	if kinds[fault.KindUnverified] == trouble {
		return fault.KindUnverified
	}
	for k := range kinds {
		if kinds[k] == all {
			return k
		}
	}
	return fault.KindPartial
}

func singleVerdict(e sandbox.Ending, kind fault.Kind) error {
	if e.Err != nil && fault.KindOf(e.Err) == kind {
		return e.Err
	}
	err := fault.New(kind, "%s", e.Reason).At(e.Ref.Provider, "terminate "+e.Ref.ID)
	err.Hint, err.Final = troubleHint([]sandbox.Ending{e}), allSkipped([]sandbox.Ending{e})
	return err
}

// summarizeTrouble counts the outcomes: "2 failed, 1 stuck".
func summarizeTrouble(trouble []sandbox.Ending) string {
	n := make(map[sandbox.Outcome]int)
	for _, e := range trouble {
		n[e.Outcome]++
	}
	var parts []string
	for _, o := range sandbox.Outcomes() {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return strings.Join(parts, ", ")
}

// troubleHint is the first hint among the errors, or advice about an end that was not seen.
func troubleHint(trouble []sandbox.Ending) string {
	for _, e := range trouble {
		if h := fault.HintOf(e.Err); h != "" {
			return h
		}
	}
	for _, e := range trouble {
		switch ref := e.Ref.String(); {
		case e.Outcome != sandbox.OutcomeAccepted && e.Outcome != sandbox.OutcomeStuck:
		case e.Request.Unconfirmed():
			return "its provider may have lost the request and reports nothing more: `sbx terminate " + ref + "` looks again, and requests the end again where it is still found; until it is verified it counts as running"
		default:
			return "check again with `sbx wait " + ref + " --for ended`, or give more time with --wait"
		}
	}
	return ""
}
