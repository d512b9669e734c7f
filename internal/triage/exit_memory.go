package triage

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// counterEvidence lists what was measured around the end.
func (f ExitFacts) counterEvidence() []sandbox.Evidence {
	var out []sandbox.Evidence
	add := func(what string, n *int64, source string, at time.Time) {
		if n != nil {
			out = append(out, textEvidence(what, strconv.FormatInt(*n, 10), source, at))
		}
	}
	add("oom_kill", f.OOMKills, f.CounterSource, f.At)
	usage := cmp.Or(f.UsageSource, f.CounterSource)
	add("memory peak bytes", f.PeakBytes, usage, f.At)
	add("memory limit bytes", f.LimitBytes, usage, f.At)
	add("last memory sample bytes", f.LastBytes, usage, f.LastAt)
	return out
}

// The levels of evidence for OOM.
const (
	nearShare  = 0.90            // last sample / limit from which the sample is a hint
	nearWindow = 2 * time.Second // longest time between that sample, or the kill of a child, and the end
)

// killedByKernel is the strongest evidence: the main program died by SIGKILL and the
// kernel's counter moved. The counter is of the whole life of the group: a child may have
// been killed, and somebody else may have killed the program later. Its log says which
// process was killed, and for whose limit: a group above or the machine may have run out of
// memory. Without that log, growth long before the end does not explain it. A peak at the limit says nothing of that, since it includes the page cache.
func killedByKernel(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	if !f.oomMoved() || f.NotLogged || f.KernelLog == "" && f.killLongBefore() || spelled.Signal != "SIGKILL" || spelled.Death == sandbox.False {
		return false
	}
	setClass(e, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable)
	scope, source := "unknown: the kernel's log does not say whose limit it reached", "kernel log"
	switch {
	case f.KernelLog == "":
		scope, source = "unknown: the counter moved while it ran, and nothing shows which process was killed and when", f.CounterSource
	case f.OwnLimit == sandbox.True:
		e.Confidence, scope = sandbox.Certain, "its own limit"
	case f.OwnLimit == sandbox.False:
		scope = "not its own limit: a group above it, or the machine, ran out of memory"
	}
	if f.KernelLog != "" {
		e.Evidence = append(e.Evidence, textEvidence("oom kill", f.KernelLog, "kernel log", f.At))
	}
	e.Evidence = append(e.Evidence, textEvidence("scope", scope, source, f.At))
	return true
}

// childKilled matches a counter that moved while the main program ended otherwise. The
// class remains that of the main program's exit. Where that exit was not seen, it is
// unknown which process was killed. A kill long before the end is no cause of it and remains
// as evidence.
func childKilled(_ *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	switch {
	case !f.oomMoved():
		return false
	case f.providerWord != nil && f.providerWord.Confidence == sandbox.Certain:
		return false // the provider knows why it ended; the counter stays as evidence
	case spelled.Code == nil:
		setClass(e, f.exitClass(spelled), sandbox.CauseOOM, sandbox.Probable)
		e.Evidence = append(e.Evidence, textEvidence("scope", "unknown: the end of the main program was not recorded", f.CounterSource, f.At))
	case f.LastKillAt.IsZero():
		setClass(e, f.exitClass(spelled), sandbox.CauseOOMChild, sandbox.Probable)
		e.Evidence = append(e.Evidence, textEvidence("when", "unknown: the counter moved while it ran", f.CounterSource, f.At))
	case f.killLongBefore():
		before, source := f.At.Sub(f.LastKillAt), "kernel log"
		if f.KernelLog == "" && !f.NotLogged {
			source = f.CounterSource
		}
		e.Evidence = append(
			e.Evidence,
			textEvidence("earlier oom kill", fmt.Sprintf("of another process, %s before the end", before.Round(time.Second)), source, f.LastKillAt),
		)
		return false
	default:
		setClass(e, f.exitClass(spelled), sandbox.CauseOOMChild, sandbox.Certain)
	}
	return true
}

// reachedTaskLimit matches a counter of refused processes beside an exit that is no success. The class remains that of
// the exit. Where the last lines show the refusal as well, it is certain that the program met it.
func reachedTaskLimit(m *Matcher, f ExitFacts, spelled Spelled, e *sandbox.Exit) bool {
	class := f.exitClass(spelled)
	if f.TasksRefused == nil || *f.TasksRefused == 0 || class == sandbox.ClassOK || spelled.Signal == "SIGKILL" || f.providerWord != nil {
		return false
	}
	setClass(e, class, sandbox.CauseProcessLimit, sandbox.Probable)
	value := fmt.Sprintf("%d times one more process or thread was refused", *f.TasksRefused)
	if f.TaskLimit != nil {
		value += fmt.Sprintf(" at its limit of %d", *f.TaskLimit)
	}
	e.Evidence = append(e.Evidence, textEvidence("process limit", value, "kernel: pids.events", f.At))
	for _, line := range f.Lines {
		if m == nil {
			break
		}
		if p, found := m.Match(line); found && p.Cause == sandbox.CauseProcessLimit {
			e.Confidence = sandbox.Certain
			e.Evidence = append(e.Evidence, textEvidence("log pattern "+p.ID, shortenLine(line), "log", f.At))
			break
		}
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
	e.Evidence = append(e.Evidence, NumberEvidence("last memory sample", share*100, "% of the limit", f.CounterSource, f.LastAt))
}

// killLongBefore says that the last OOM kill was too long before the end to be its cause.
func (f ExitFacts) killLongBefore() bool {
	return !f.LastKillAt.IsZero() && f.At.Sub(f.LastKillAt) > nearWindow
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
