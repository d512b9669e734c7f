package triage

import (
	"time"

	"sbx/internal/sandbox"
)

// The rungs of the OOM evidence ladder.
const (
	peakShare  = 0.97            // from this share of the limit on, the peak says that its own limit was hit
	nearShare  = 0.90            // a last sample from here on is a hint
	nearWindow = 2 * time.Second // if it was taken so shortly before the kill
)

// killedByKernel is the top of the ladder: the main program died by SIGKILL and
// the kernel's counter moved. A peak at the limit makes it certain. Below the
// limit, or without a peak, the kill is certain and its scope is not: the host
// or a group above may have run out.
func killedByKernel(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if !f.oomMoved() || spelled.Signal != "SIGKILL" || spelled.Death == sandbox.False {
		return false
	}
	if share, known := shareOf(f.PeakBytes, f.LimitBytes); known && share >= peakShare {
		claim(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Certain)
		return true
	}
	claim(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable)
	e.Evidence = append(e.Evidence, words("scope", "unknown: the kernel killed for memory, its own limit was not seen to be hit", f.CounterSource, f.At))
	return true
}

// childKilled: the counter moved and the main program ended otherwise. The
// class stays the one of its own exit. Where that was not seen, which process
// was killed is open.
func childKilled(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	switch {
	case !f.oomMoved():
		return false
	case f.said != nil && f.said.Confidence == sandbox.Certain:
		return false // the provider knows why it ended; the counter stays as evidence
	case spelled.Code == nil:
		claim(e, f.classOf(spelled), sandbox.CauseOOM, sandbox.Probable)
		e.Evidence = append(e.Evidence, words("scope", "unknown: the end of the main program was not seen", f.CounterSource, f.At))
	default:
		claim(e, f.classOf(spelled), sandbox.CauseOOMChild, sandbox.Certain)
	}
	return true
}

// loggedByKernel: no counter was watched, and the kernel's log names the program. Which
// limit was hit, the machine's or that of a group around it, stands in the line.
func loggedByKernel(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if f.KernelLog == "" || f.OOMKills != nil || spelled.Signal != "SIGKILL" {
		return false
	}
	claim(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable)
	e.Evidence = append(e.Evidence, words("oom kill", f.KernelLog, "kernel log", f.At))
	return true
}

// nearLimit is the lowest rung: memory was near the limit just before the kill.
// It is not asked where the counter was watched and did not move.
func nearLimit(f ExitFacts, e *sandbox.Exit) {
	share, known := shareOf(f.LastBytes, f.LimitBytes)
	before := f.At.Sub(f.LastAt)
	switch {
	case f.OOMKills != nil, !known, share < nearShare, f.LastAt.IsZero(), before < 0, before > nearWindow:
		return
	}
	e.Cause, e.Confidence = sandbox.CauseOOM, sandbox.Hint
	e.Evidence = append(e.Evidence, number("last memory sample", share*100, "% of the limit", f.CounterSource, f.LastAt))
}

func (f ExitFacts) oomMoved() bool { return f.OOMKills != nil && *f.OOMKills > 0 }

// shareOf is part of whole; false when either is missing or makes no sense.
func shareOf(part, whole *int64) (float64, bool) {
	if part == nil || whole == nil || *whole <= 0 || *part < 0 {
		return 0, false
	}
	return float64(*part) / float64(*whole), true
}
