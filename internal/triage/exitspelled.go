package triage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// limitSlack is how much less than the limit a run may have taken that was ended
// by it: duration and limit are measured at different ends.
const limitSlack = 100 * time.Millisecond

// FindExitWord looks up what a provider says of an end in its own words; letter case
// and a leading "HTTP" do not count. Signals, exit codes and "exit code -9" are not among
// them: they read alike everywhere, see ParseExit.
func FindExitWord(words []sandbox.ExitWord, raw string) (sandbox.ExitWord, bool) {
	word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(raw)), "http ")
	i := slices.IndexFunc(words, func(w sandbox.ExitWord) bool { return w.Raw == word })
	if i < 0 {
		return sandbox.ExitWord{}, false
	}
	return words[i], true
}

// ranOut: a kill, or a session's end, at the moment at which the limit was over.
// Where the counter did not move, that is what probably ended it.
func ranOut(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.Limit <= 0 || f.Ran <= 0 || !f.endsByLimit(spelled) {
		return false
	}
	e.Evidence = append(e.Evidence, words("ran", fmt.Sprintf("%s of the %s it was given", f.Ran, f.Limit), f.Source, f.At))
	if f.Ran < f.Limit-limitSlack {
		return false
	}
	claim(e, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable)
	return true
}

// endsByLimit says that a provider's time limit may show like this.
func (f ExitFacts) endsByLimit(spelled Spelled) bool {
	if f.said == nil {
		return spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM"
	}
	switch f.said.Class {
	case sandbox.ClassKilledUnknown, sandbox.ClassStopped, sandbox.ClassGone, sandbox.ClassInfra:
		return true
	default:
		return false
	}
}

// bySpelling takes what the provider says in its own words, or that it could say
// nothing.
func bySpelling(_ *Matcher, f ExitFacts, _ Spelled, e *sandbox.Exit) bool {
	switch {
	case f.said != nil:
		claim(e, f.said.Class, f.said.Cause, f.said.Confidence)
		if f.said.Class == sandbox.ClassKilledUnknown {
			nearLimit(f, e)
		}
	case f.StreamLost && f.Raw == "":
		claim(e, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
	default:
		return false
	}
	return true
}

// classOf is the class of an exit by what was said or by its number.
func (f ExitFacts) classOf(spelled Spelled) sandbox.Class {
	switch {
	case f.said != nil:
		return f.said.Class
	case f.StreamLost && f.Raw == "":
		return sandbox.ClassTransport
	}
	return classOf(spelled).class
}

// spoken writes down what a provider's words mean, and that the stream broke off.
func (f ExitFacts) spoken() []sandbox.Evidence {
	var out []sandbox.Evidence
	if f.said != nil {
		out = append(out, words("meaning", f.said.Says, f.Provider, f.At))
	}
	if f.StreamLost {
		out = append(out, words("stream", "broke off before the end was told", f.Source, f.At))
	}
	return out
}
