package ops

import (
	"fmt"
	"slices"

	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// MitigatingVerbs are those whose ends mitigate an incident; what a runbook ends is in the journals of these. Tasks end
// sandboxes all day.
func MitigatingVerbs() []string {
	return []string{runs.VerbTerminate, runs.VerbCleanup, runs.VerbReconcile}
}

// Ends counts the sandboxes whose end was requested, each by its newest request.
type Ends struct {
	Requested int
	Proved    int
}

// CountEnds counts those of mitigating verbs, of acts in any order.
func CountEnds(acts []runs.Act) Ends {
	newest := map[sandbox.Ref]runs.Act{}
	for _, a := range acts {
		if a.Ends() && slices.Contains(MitigatingVerbs(), a.Verb) && !a.At.Before(newest[a.Ref].At) {
			newest[a.Ref] = a
		}
	}
	var e Ends
	for _, a := range newest {
		switch a.Outcome {
		case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
			e.Proved++
		case sandbox.OutcomeSkipped, sandbox.OutcomeChanged, sandbox.OutcomeNotAttempted:
			continue
		case sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed:
		}
		e.Requested++
	}
	return e
}

// Text says how many have ended: "26 of 26 ended, verified"; "" = nothing was requested.
func (e Ends) Text() string {
	if e.Requested == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d ended, verified", e.Proved, e.Requested)
}

// CountsText names the outcomes that there are: "18 verified, 2 changed".
func CountsText(c fleet.Counts) string {
	text := ""
	for _, o := range sandbox.Outcomes() {
		if n := c.Of(o); n > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d %s", n, o)
		}
	}
	if text == "" {
		return "-"
	}
	return text
}

// WithDetail writes "what (more)".
func WithDetail(what, more string) string {
	if more == "" {
		return what
	}
	return what + " (" + more + ")"
}
