package triage

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"sbx/internal/cron"
	"sbx/internal/sandbox"
)

func (m observation) isRunning() bool { return m.s.State == sandbox.StateRunning }

func (m observation) cpuSymptom(say string, weight int, holds func(percent float64) bool) Symptom {
	s := Symptom{Say: say, Weight: weight, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.CPUPercent != nil {
		s.Verdict = sandbox.VerdictOf(holds(*tr.CPUPercent))
		s.Evidence = []sandbox.Evidence{NumberEvidence("cpu", *tr.CPUPercent, "%", tr.Source, tr.At)}
	}
	return s
}

func (m observation) cpuAtLimit() Symptom {
	s := m.cpuSymptom("CPU is at its limit", 3, func(float64) bool { return m.sig.Trend.AtLimit(m.t) })
	if tr := m.sig.Trend; s.Verdict == sandbox.True && tr.CPUDemand != nil && *tr.CPUPercent < m.t.CPUBusy {
		s.Evidence = append(s.Evidence, NumberEvidence("cpu wanted", *tr.CPUDemand, "%", tr.Source, tr.At))
	}
	return s
}

func (m observation) cpuAtRest(weight int) Symptom {
	return m.cpuSymptom("CPU is idle", weight, func(p float64) bool { return p < m.t.CPUIdle })
}

func (m observation) neverCompletes() Symptom {
	s := Symptom{Say: "it does not complete", Weight: 2, Verdict: sandbox.False}
	if m.isRunning() {
		verdict, e := olderThan(m.s, m.t.StuckAge, m.now)
		s.Verdict, s.Evidence = verdict, []sandbox.Evidence{e}
	}
	return s
}

func (m observation) noErrors() Symptom {
	s := Symptom{Say: "its log reports no errors", Weight: 1, Verdict: sandbox.Unknown}
	if m.sig.Logs != nil {
		s.Verdict = sandbox.VerdictOf(m.sig.Logs.Errors == 0)
	}
	return s
}

func (m observation) manyOperations() Symptom {
	s := Symptom{Say: "it does very many operations", Weight: 2, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.OperationsRate != nil {
		s.Verdict = sandbox.VerdictOf(*tr.OperationsRate >= m.t.OperationsHigh)
		s.Evidence = []sandbox.Evidence{NumberEvidence("operations", *tr.OperationsRate, "/s", tr.Source, tr.At)}
	}
	return s
}

// noProgress is the symptom that distinguishes a loop from heavy work (R47): the log
// repeats itself or is silent.
func (m observation) noProgress() Symptom {
	s := Symptom{Say: "its log shows no progress", Weight: 3, Verdict: sandbox.Unknown}
	if m.sig.Logs == nil {
		return s
	}
	if m.sig.repeatsLines(m.t) {
		s.Verdict, s.Evidence = sandbox.True, m.repeatEvidence()
	} else {
		quiet := flagSilent(m.s, m.sig, m.t, m.now)
		s.Verdict, s.Evidence = quiet.Verdict, quiet.Evidence
	}
	return s
}

func (m observation) repeatEvidence() []sandbox.Evidence {
	r := m.sig.Logs.Repeat
	return []sandbox.Evidence{
		NumberEvidence("repeated lines", float64(r.Count), " of the last 50", "log", m.sig.Logs.Last),
		textEvidence("repeated line", r.Line, "log", m.sig.Logs.Last),
	}
}

// loggedSymptom is a support: the absence of a message proves nothing.
func (m observation) loggedSymptom(weight int, id string) Symptom {
	s := Symptom{Say: "the log shows " + id, Weight: weight, Support: true, Verdict: sandbox.Unknown}
	if m.sig.Logs == nil {
		return s
	}
	s.Verdict = sandbox.False
	if succeeded(m.s) {
		return s
	}
	for _, h := range m.sig.Logs.Hits {
		if h.Pattern.ID == id {
			s.Verdict = sandbox.True
			s.Evidence = []sandbox.Evidence{textEvidence("log pattern "+id, h.Sample, "log", h.Last)}
		}
	}
	return s
}

// tasksRefused holds while the sandbox is near its limit of processes and the kernel has refused more. The counter is
// for life, so that it proves nothing once processes have ended.
func (m observation) tasksRefused() Symptom {
	s := Symptom{Say: "the kernel refuses further processes and threads", Weight: 3, Verdict: sandbox.Unknown}
	tr := m.sig.Trend
	if tr == nil || tr.TasksRefused == nil {
		return s
	}
	share, known := shareOf(tr.Tasks, m.s.Limits.PIDs)
	switch {
	case *tr.TasksRefused == 0, known && share < m.t.MemoryNear: // as near as memory is
		s.Verdict = sandbox.False
	case known:
		s.Verdict = sandbox.True
		s.Evidence = []sandbox.Evidence{
			textEvidence("processes and threads", fmt.Sprintf("%d of %d", *tr.Tasks, *m.s.Limits.PIDs), tr.Source, tr.At),
			textEvidence("refused", strconv.FormatInt(*tr.TasksRefused, 10), "kernel: pids.events", tr.At),
		}
	}
	return s
}

func (m observation) silentSymptom(weight int) Symptom {
	f := flagSilent(m.s, m.sig, m.t, m.now)
	return Symptom{Say: f.Say, Weight: weight, Verdict: f.Verdict, Evidence: f.Evidence}
}

func (m observation) lastCall() Symptom {
	s := Symptom{Say: "its last action is a call to an external service", Weight: 2, Verdict: sandbox.Unknown}
	if m.sig.Logs != nil && m.sig.Logs.Lines > 0 {
		s.Verdict = sandbox.VerdictOf(m.sig.Logs.Calling)
	}
	if s.Verdict == sandbox.True {
		s.Evidence = []sandbox.Evidence{textEvidence("last call", m.sig.Logs.Call, "log", m.sig.Logs.Last)}
	}
	return s
}

func (m observation) waitsForPeer() Symptom {
	s := Symptom{Say: "waits for a peer that does not answer", Weight: 3, Verdict: sandbox.Unknown, Evidence: m.waitEvidence()}
	if tr := m.sig.Trend; tr != nil && tr.Waiting != "" {
		s.Verdict = sandbox.VerdictOf(waitsOutside(tr.Waiting))
	}
	return s
}

func (m observation) waitEvidence() []sandbox.Evidence {
	tr := m.sig.Trend
	if tr == nil || tr.Waiting == "" {
		return nil
	}
	return []sandbox.Evidence{textEvidence("waits on", tr.Waiting, tr.Source, tr.At)}
}

func (m observation) memoryGrows() Symptom {
	s := Symptom{Say: "its memory grows", Weight: 3, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.MemorySlope != nil {
		s.Verdict = sandbox.VerdictOf(tr.memoryGrows(m.t))
		s.Evidence = []sandbox.Evidence{NumberEvidence("memory slope", *tr.MemorySlope, " MiB/min", cmp.Or(tr.MemorySource, tr.Source), tr.At)}
	}
	return s
}

func (m observation) fillsUp() Symptom {
	s := Symptom{Say: "its memory is near the limit, or soon at it", Weight: 4, Verdict: sandbox.Unknown}
	tr := m.sig.Trend
	if tr == nil {
		return s
	}
	if share, known := tr.memoryShare(); known && tr.MemorySlope != nil {
		s.Verdict = sandbox.VerdictOf(tr.fillsUp(m.t))
		s.Evidence = []sandbox.Evidence{NumberEvidence("memory", share*100, "% of the limit", tr.Source, tr.At)}
		if left, grows := tr.fullIn(); grows {
			s.Evidence = append(s.Evidence, textEvidence("full", "in about "+sandbox.FormatDuration(left), tr.Source, tr.At))
		}
	}
	return s
}

func (m observation) showsLife() sandbox.Verdict {
	if !m.isRunning() {
		return sandbox.Unknown
	}
	lives, _, _ := judgeLife(m.s, m.sig, m.t, m.now)
	return lives
}

// counterSymptom is a symptom that holds when a counter of the profile is above zero.
func (m observation) counterSymptom(say string, weight int, of func(*FleetSignals) *int64) Symptom {
	s := Symptom{Say: say, Weight: weight, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil {
		return s
	}
	if n := of(m.sig.Fleet); n != nil {
		s.Verdict = sandbox.VerdictOf(*n > 0)
		s.Evidence = []sandbox.Evidence{NumberEvidence(say, float64(*n), "", "fleet", m.now)}
	}
	return s
}

func (m observation) oldOnesPile() Symptom {
	return m.counterSymptom("sandboxes over the stuck age", 2, func(f *FleetSignals) *int64 { return f.OverStuckAge })
}

func (m observation) cannotCreate() Symptom {
	return m.counterSymptom("creates that failed", 2, func(f *FleetSignals) *int64 { return f.CreateFailures })
}

// quotaRunsShort is R109: a limit of the account is nearly used up. A low use of the
// reported limits proves nothing about the limits that are not reported.
func (m observation) quotaRunsShort() Symptom {
	s := Symptom{Say: "a quota of the account is nearly exhausted", Weight: 3, Support: true, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil || m.sig.Fleet.QuotaUsed == nil {
		return s
	}
	used := *m.sig.Fleet.QuotaUsed
	s.Verdict = sandbox.VerdictOf(used >= m.t.QuotaNear)
	text := FormatDecimal(used*100) + "%"
	if q := m.sig.Fleet.Quota; q != nil {
		text = FormatDecimal(q.Used) + " of " + FormatDecimal(q.Limit)
		if q.Unit == unitSandboxes {
			text += m.fullIn(*q)
		} else {
			text += " " + q.Unit
		}
	}
	s.Evidence = []sandbox.Evidence{textEvidence("quota used", text, "quota", m.now)}
	return s
}

// fullIn says when a limit of running sandboxes is reached if they grow as before; "" where they do not.
func (m observation) fullIn(q QuotaUse) string {
	first, last, known := m.sig.Fleet.Growth(m.t.CleanupEvery, m.now)
	more := float64(last.Active - first.Active)
	if !known || more <= 0 || q.Used >= q.Limit {
		return ""
	}
	left := (q.Limit - q.Used) / more * float64(last.At.Sub(first.At))
	return ", full in " + sandbox.FormatElapsed(time.Duration(left))
}

// noCleanupSeen holds after two intervals without a cleanup, so that one late run is no
// finding.
func (m observation) noCleanupSeen() Symptom {
	s := Symptom{Say: "no cleanup ran", Weight: 3, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil || !m.sig.Fleet.CleanupRead {
		return s
	}
	seen := m.sig.Fleet.CleanupSeen
	s.Verdict = sandbox.VerdictOf(m.sig.Fleet.CleanupOverdue(m.t.CleanupEvery, m.now))
	if !seen.IsZero() {
		s.Evidence = []sandbox.Evidence{DurationEvidence("since the last cleanup", m.now.Sub(seen), "cleanup log", seen)}
	}
	return s
}

// CleanupOverdue reports whether cleanup has not succeeded for too long.
func (f FleetSignals) CleanupOverdue(every time.Duration, now time.Time) bool {
	return cron.Late(f.CleanupSeen, every, now)
}

// activeGrows compares the oldest and the newest sample, which must be at least one
// cleanup interval apart.
func (m observation) activeGrows() Symptom {
	s := Symptom{Say: "the number of active sandboxes grows", Weight: 2, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil {
		return s
	}
	first, last, known := m.sig.Fleet.Growth(m.t.CleanupEvery, m.now)
	if !known {
		return s
	}
	s.Verdict = sandbox.VerdictOf(last.Active > first.Active)
	s.Evidence = []sandbox.Evidence{
		NumberEvidence("active", float64(first.Active), "", "history", first.At),
		NumberEvidence("active", float64(last.Active), "", "history", last.At),
	}
	return s
}

// allProvisioning is R108: no sandbox is active, and this one is stuck in provisioning. A
// single sandbox that starts is no exhaustion.
func (m observation) allProvisioning() Symptom {
	s := Symptom{Say: "all sandboxes are stuck in provisioning", Weight: 2, Verdict: sandbox.Unknown}
	f := m.sig.Fleet
	if m.isRunning() { // so not all are
		s.Verdict = sandbox.False
		return s
	}
	if f == nil || f.Active == nil || f.Provisioning == nil {
		return s
	}
	s.Evidence = []sandbox.Evidence{NumberEvidence("in provisioning", float64(*f.Provisioning), "", "stats", m.now)}
	s.Verdict = sandbox.False
	if *f.Active == 0 && *f.Provisioning > 0 && m.s.State == sandbox.StateProvisioning {
		s.Verdict, _ = olderThan(m.s, m.t.ProvisioningAge, m.now)
	}
	return s
}

// missingAtProvider is R94: the record says running, and the provider no longer has it.
func (m observation) missingAtProvider() Symptom {
	s := Symptom{Say: "listed as running but does not exist", Weight: 3, Verdict: sandbox.Unknown}
	if m.isRunning() {
		s.Verdict = m.sig.Exists.Negated()
	}
	if s.Verdict == sandbox.True {
		s.Evidence = []sandbox.Evidence{doesNotExist(m.now)}
	}
	return s
}

func doesNotExist(now time.Time) sandbox.Evidence {
	return textEvidence("exists", "no", "provider", now)
}

// succeeded reports whether the program has ended well: then a message in its log proves no fault,
// since the same messages are in the log of every good run (S0-30).
func succeeded(s sandbox.Sandbox) bool { return s.Exit != nil && s.Exit.Class == sandbox.ClassOK }

// runsAfterItsEnd is S1-60: the record says that it was stopped or has failed, and it answers.
func (m observation) runsAfterItsEnd() Symptom {
	f := flagRunsAfterItsEnd(m.s, m.sig)
	return Symptom{Say: f.Say, Weight: 6, Support: true, Verdict: f.Verdict, Evidence: f.Evidence}
}
