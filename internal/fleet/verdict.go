package fleet

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Counts are how many endings had which outcome. Every outcome is there, also
// at 0, and their sum is Selected.
type Counts struct {
	Selected     int `json:"selected"`
	Verified     int `json:"verified"`
	AlreadyGone  int `json:"already_gone"`
	Accepted     int `json:"accepted"`
	Stuck        int `json:"stuck"`
	Failed       int `json:"failed"`
	Changed      int `json:"changed"`
	Skipped      int `json:"skipped"`
	NotAttempted int `json:"not_attempted"`
}

// Count counts endings by outcome. An outcome that is not in the closed list
// counts as failed.
func Count(endings []sandbox.Ending) Counts {
	c := Counts{Selected: len(endings)}
	for _, e := range endings {
		*c.of(e.Outcome)++
	}
	return c
}

// Of is how many endings had an outcome.
func (c Counts) Of(o sandbox.Outcome) int { return *c.of(o) }

// Add counts n more of an outcome; Selected is the caller's.
func (c *Counts) Add(o sandbox.Outcome, n int) { *c.of(o) += n }

func (c *Counts) of(o sandbox.Outcome) *int {
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

// Verdict is the error behind the exit code of a run (DESIGN section 4); nil
// when everything ended. What was interrupted is canceled or timeout; accepted
// and stuck as the only trouble are KindUnverified; when all failed with one
// kind it is that kind; else KindPartial. Changed and skipped count only where
// the operator named the sandboxes by hand.
func Verdict(endings []sandbox.Ending, named bool) error {
	var trouble []sandbox.Ending
	kinds := make(map[fault.Kind]int)
	for _, e := range endings {
		if kind := kindOf(e, named); kind != fault.KindNone {
			trouble = append(trouble, e)
			kinds[kind]++
		}
	}
	if len(trouble) == 0 {
		return nil
	}
	kind := overall(kinds, len(trouble), len(endings))
	if len(endings) == 1 {
		return single(trouble[0], kind)
	}
	err := fault.New(kind, "%d of %d sandboxes were not seen to end: %s", len(trouble), len(endings), summary(trouble))
	if hint := hintOf(trouble); hint != "" {
		err.Hint = hint
	}
	err.Final = leftAlone(trouble)
	return err
}

// leftAlone says that all of them were kept on purpose, so that asking in the same way
// again ends none of them.
func leftAlone(endings []sandbox.Ending) bool {
	return !slices.ContainsFunc(endings, func(e sandbox.Ending) bool {
		return e.Outcome != sandbox.OutcomeSkipped && e.Outcome != sandbox.OutcomeChanged
	})
}

// kindOf is what is wrong with one ending; KindNone = nothing.
func kindOf(e sandbox.Ending, named bool) fault.Kind {
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

func overall(kinds map[fault.Kind]int, trouble, all int) fault.Kind {
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

// single is the verdict on one sandbox: its own words.
func single(e sandbox.Ending, kind fault.Kind) error {
	if e.Err != nil && fault.KindOf(e.Err) == kind {
		return e.Err
	}
	err := fault.New(kind, "%s", e.Reason).At(e.Ref.Provider, "terminate "+e.Ref.ID)
	err.Hint, err.Final = hintOf([]sandbox.Ending{e}), leftAlone([]sandbox.Ending{e})
	return err
}

// summary counts the outcomes in trouble: "2 failed, 1 stuck".
func summary(trouble []sandbox.Ending) string {
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

// hintOf is the first hint among the errors, or what to do about an end that
// was not seen.
func hintOf(trouble []sandbox.Ending) string {
	for _, e := range trouble {
		if h := fault.HintOf(e.Err); h != "" {
			return h
		}
	}
	for _, e := range trouble {
		switch ref := e.Ref.String(); {
		case e.Outcome != sandbox.OutcomeAccepted && e.Outcome != sandbox.OutcomeStuck:
		case e.Request.Unconfirmed():
			return "its provider may have dropped the request and shows no more: `sbx terminate " + ref + "` asks and looks again; until its end is proved it counts as running"
		default:
			return "look again with `sbx wait " + ref + " --for ended`, or give more time with --wait"
		}
	}
	return ""
}
