package triage

import (
	"sbx/internal/sandbox"
)

func (m matter) running() bool { return m.s.State == sandbox.StateRunning }

func (m matter) cpu(row, say string, weight int, holds func(percent float64) bool) Symptom {
	s := Symptom{Row: row, Say: say, Weight: weight, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.CPUPercent != nil {
		s.Verdict = sandbox.VerdictOf(holds(*tr.CPUPercent))
		s.Evidence = []sandbox.Evidence{number("cpu", *tr.CPUPercent, "%", tr.Source, tr.At)}
	}
	return s
}

func (m matter) cpuAtLimit() Symptom {
	s := m.cpu("R59", "the processor is at its limit", 3, func(float64) bool { return m.sig.Trend.atLimit(m.t) })
	if tr := m.sig.Trend; s.Verdict == sandbox.True && tr.CPUDemand != nil && *tr.CPUPercent < m.t.CPUBusy {
		s.Evidence = append(s.Evidence, number("cpu wanted", *tr.CPUDemand, "%", tr.Source, tr.At))
	}
	return s
}

func (m matter) cpuAtRest(row string, weight int) Symptom {
	return m.cpu(row, "the processor rests", weight, func(p float64) bool { return p < m.t.CPUIdle })
}

func (m matter) neverCompletes() Symptom {
	s := Symptom{Row: "R60", Say: "it does not complete", Weight: 2, Verdict: sandbox.False}
	if m.running() {
		verdict, e := over(m.s, m.t.StuckAge, m.now)
		s.Verdict, s.Evidence = verdict, []sandbox.Evidence{e}
	}
	return s
}

func (m matter) noErrors() Symptom {
	s := Symptom{Row: "R61", Say: "its log reports no errors", Weight: 1, Verdict: sandbox.Unknown}
	if m.sig.Logs != nil {
		s.Verdict = sandbox.VerdictOf(m.sig.Logs.Errors == 0)
	}
	return s
}

func (m matter) manyOperations() Symptom {
	s := Symptom{Row: "R62", Say: "it does very many operations", Weight: 2, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.OperationsRate != nil {
		s.Verdict = sandbox.VerdictOf(*tr.OperationsRate >= m.t.OperationsHigh)
		s.Evidence = []sandbox.Evidence{number("operations", *tr.OperationsRate, "/s", tr.Source, tr.At)}
	}
	return s
}

// noProgress is the sign that tells a loop from heavy work (R47): the log goes
// round in a circle, or says nothing at all.
func (m matter) noProgress() Symptom {
	s := Symptom{Row: "R36", Say: "its log shows no progress", Weight: 3, Verdict: sandbox.Unknown}
	if m.sig.Logs == nil {
		return s
	}
	quiet := silent(m.s, m.sig, m.t, m.now)
	switch {
	case m.sig.repeats(m.t):
		s.Verdict, s.Evidence = sandbox.True, m.repeatEvidence()
	default:
		s.Verdict, s.Evidence = quiet.Verdict, quiet.Evidence
	}
	return s
}

func (m matter) repeatEvidence() []sandbox.Evidence {
	r := m.sig.Logs.Repeat
	return []sandbox.Evidence{
		number("repeated lines", float64(r.Count), " of the last 50", "log", m.sig.Logs.Last),
		words("repeated line", r.Line, "log", m.sig.Logs.Last),
	}
}

// logged is a support: a message that is missing proves nothing.
func (m matter) logged(row string, weight int, id string) Symptom {
	s := Symptom{Row: row, Say: "the log says " + id, Weight: weight, Support: true, Verdict: sandbox.Unknown}
	if m.sig.Logs == nil {
		return s
	}
	s.Verdict = sandbox.False
	for _, h := range m.sig.Logs.Hits {
		if h.Pattern.ID == id {
			s.Verdict = sandbox.True
			s.Evidence = []sandbox.Evidence{words("log pattern "+id, h.Sample, "log", h.Last)}
		}
	}
	return s
}

func (m matter) silent(row string, weight int) Symptom {
	f := silent(m.s, m.sig, m.t, m.now)
	return Symptom{Row: row, Say: f.Say, Weight: weight, Verdict: f.Verdict, Evidence: f.Evidence}
}

func (m matter) lastCall() Symptom {
	s := Symptom{Row: "R73", Say: "the last thing it did is a call to the outside", Weight: 2, Verdict: sandbox.Unknown}
	if m.sig.Logs != nil && m.sig.Logs.Lines > 0 {
		s.Verdict = sandbox.VerdictOf(m.sig.Logs.Calling)
	}
	if s.Verdict == sandbox.True {
		s.Evidence = []sandbox.Evidence{words("last call", m.sig.Logs.Call, "log", m.sig.Logs.Last)}
	}
	return s
}

func (m matter) waitsForPeer() Symptom {
	s := Symptom{Row: "R74", Say: "waits for a peer that does not answer", Weight: 3, Verdict: sandbox.Unknown, Evidence: m.waitEvidence()}
	if tr := m.sig.Trend; tr != nil && tr.Waiting != "" {
		s.Verdict = sandbox.VerdictOf(waitsOutside(tr.Waiting))
	}
	return s
}

func (m matter) waitEvidence() []sandbox.Evidence {
	tr := m.sig.Trend
	if tr == nil || tr.Waiting == "" {
		return nil
	}
	return []sandbox.Evidence{words("waits on", tr.Waiting, tr.Source, tr.At)}
}

func (m matter) memoryGrows() Symptom {
	s := Symptom{Row: "R49", Say: "its memory grows", Weight: 3, Verdict: sandbox.Unknown}
	if tr := m.sig.Trend; tr != nil && tr.MemorySlope != nil {
		s.Verdict = sandbox.VerdictOf(tr.grows(m.t))
		s.Evidence = []sandbox.Evidence{number("memory slope", *tr.MemorySlope, " MiB/min", tr.Source, tr.At)}
	}
	return s
}

func (m matter) fillsUp() Symptom {
	s := Symptom{Row: "R37", Say: "its memory is near the limit, or soon at it", Weight: 4, Verdict: sandbox.Unknown}
	tr := m.sig.Trend
	if tr == nil {
		return s
	}
	if share, known := tr.near(); known && tr.MemorySlope != nil {
		s.Verdict = sandbox.VerdictOf(tr.fillsUp(m.t))
		s.Evidence = []sandbox.Evidence{number("memory", share*100, "% of the limit", tr.Source, tr.At)}
		if left, grows := tr.fullIn(); grows {
			s.Evidence = append(s.Evidence, words("full", "in about "+sandbox.FormatDuration(left), tr.Source, tr.At))
		}
	}
	return s
}

func (m matter) lives() sandbox.Verdict {
	if !m.running() {
		return sandbox.Unknown
	}
	lives, _, _ := judgeLife(m.s, m.sig, m.t, m.now)
	return lives
}
