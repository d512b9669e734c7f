package triage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// The levels of evidence for OOM.
const (
	peakShare  = 0.97            // peak / limit from which the group's own limit was hit
	nearShare  = 0.90            // last sample / limit from which the sample is a hint
	nearWindow = 2 * time.Second // longest time between that sample and the kill
)

// killedByKernel is the strongest evidence: the main program died by SIGKILL and the
// kernel's counter moved. A peak at the limit makes OOM certain. Below the limit, or
// without a peak, the kill is certain and its scope is not: the host or a parent group
// may have run out of memory.
func killedByKernel(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if !f.oomMoved() || spelled.Signal != "SIGKILL" || spelled.Death == sandbox.False {
		return false
	}
	if share, known := shareOf(f.PeakBytes, f.LimitBytes); known && share >= peakShare {
		setClass(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Certain)
		return true
	}
	setClass(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable)
	e.Evidence = append(e.Evidence, textEvidence("scope", "unknown: the kernel killed for memory, its own limit was not seen to be hit", f.CounterSource, f.At))
	return true
}

// childKilled matches a counter that moved while the main program ended otherwise. The
// class remains that of the main program's exit. Where that exit was not seen, it is
// unknown which process was killed.
func childKilled(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	switch {
	case !f.oomMoved():
		return false
	case f.providerWord != nil && f.providerWord.Confidence == sandbox.Certain:
		return false // the provider knows why it ended; the counter stays as evidence
	case spelled.Code == nil:
		setClass(e, f.exitClass(spelled), sandbox.CauseOOM, sandbox.Probable)
		e.Evidence = append(e.Evidence, textEvidence("scope", "unknown: the end of the main program was not seen", f.CounterSource, f.At))
	default:
		setClass(e, f.exitClass(spelled), sandbox.CauseOOMChild, sandbox.Certain)
	}
	return true
}

// loggedByKernel matches where no counter was observed and the kernel's log names the
// program. The line says which limit was hit, the machine's or that of a group.
func loggedByKernel(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.KernelLog == "" || f.OOMKills != nil || spelled.Signal != "SIGKILL" {
		return false
	}
	setClass(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable)
	e.Evidence = append(e.Evidence, textEvidence("oom kill", f.KernelLog, "kernel log", f.At))
	return true
}

// nearLimit is the weakest evidence: memory was near the limit just before the kill. It
// does not apply where the counter was observed and did not move.
func nearLimit(f ExitFacts, e *sandbox.Exit) {
	share, known := shareOf(f.LastBytes, f.LimitBytes)
	before := f.At.Sub(f.LastAt)
	switch {
	case f.OOMKills != nil, !known, share < nearShare, f.LastAt.IsZero(), before < 0, before > nearWindow:
		return
	}
	e.Cause, e.Confidence = sandbox.CauseOOM, sandbox.Hint
	e.Evidence = append(e.Evidence, numberEvidence("last memory sample", share*100, "% of the limit", f.CounterSource, f.LastAt))
}

func (f ExitFacts) oomMoved() bool { return f.OOMKills != nil && *f.OOMKills > 0 }

// shareOf is part / whole; false when either is missing or out of range.
func shareOf(part, whole *int64) (float64, bool) {
	if part == nil || whole == nil || *whole <= 0 || *part < 0 {
		return 0, false
	}
	return float64(*part) / float64(*whole), true
}

// limitSlack is the tolerance between run time and limit: they are measured at different
// ends of the connection.
const limitSlack = 100 * time.Millisecond

// FindExitWord looks up a provider's own word for an exit; letter case and a leading
// "HTTP" are ignored. Signals, exit codes and "exit code -9" are the same everywhere and
// not in these lists, see ParseExit.
func FindExitWord(words []sandbox.ExitWord, raw string) (sandbox.ExitWord, bool) {
	word := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(raw)), "http ")
	i := slices.IndexFunc(words, func(w sandbox.ExitWord) bool { return w.Raw == word })
	if i < 0 {
		return sandbox.ExitWord{}, false
	}
	return words[i], true
}

// ranOutOfTime matches a kill, or the end of a session, at the time limit. Where the OOM
// counter did not move, the limit is the probable cause.
func ranOutOfTime(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.Limit <= 0 || f.Ran <= 0 || !f.endsByLimit(spelled) {
		return false
	}
	e.Evidence = append(e.Evidence, textEvidence("ran", fmt.Sprintf("%s of the %s it was given", f.Ran, f.Limit), f.Source, f.At))
	if f.Ran < f.Limit-limitSlack {
		return false
	}
	setClass(e, sandbox.ClassTimeout, sandbox.CauseTimeout, sandbox.Probable)
	return true
}

// endsByLimit reports whether a provider's time limit may show up like this.
func (f ExitFacts) endsByLimit(spelled Spelled) bool {
	if f.providerWord == nil {
		return spelled.Signal == "SIGKILL" || spelled.Signal == "SIGTERM"
	}
	switch f.providerWord.Class {
	case sandbox.ClassKilledUnknown, sandbox.ClassStopped, sandbox.ClassGone, sandbox.ClassInfra:
		return true
	default:
		return false
	}
}

// classifyByWord applies the provider's own exit word, or a lost stream.
func classifyByWord(_ *Matcher, f ExitFacts, _ Spelled, e *sandbox.Exit) bool {
	switch {
	case f.providerWord != nil:
		setClass(e, f.providerWord.Class, f.providerWord.Cause, f.providerWord.Confidence)
		if f.providerWord.Class == sandbox.ClassKilledUnknown {
			nearLimit(f, e)
		}
	case f.StreamLost && f.Raw == "":
		setClass(e, sandbox.ClassTransport, sandbox.CauseUnknown, sandbox.ConfidenceUnknown)
	default:
		return false
	}
	return true
}

// exitClass is the class of an exit by the provider's word or by its number.
func (f ExitFacts) exitClass(spelled Spelled) sandbox.Class {
	switch {
	case f.providerWord != nil:
		return f.providerWord.Class
	case f.StreamLost && f.Raw == "":
		return sandbox.ClassTransport
	}
	return exitRowOf(spelled).class
}

// providerEvidence explains the provider's word and records that the stream was lost.
func (f ExitFacts) providerEvidence() []sandbox.Evidence {
	var out []sandbox.Evidence
	if f.providerWord != nil {
		out = append(out, textEvidence("meaning", f.providerWord.Says, f.Provider, f.At))
	}
	if f.StreamLost {
		out = append(out, textEvidence("stream", "broke off before the end was told", f.Source, f.At))
	}
	return out
}
