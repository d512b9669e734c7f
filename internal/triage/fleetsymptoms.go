package triage

import "sbx/internal/sandbox"

// counter is a symptom that holds when a counter of the profile is above zero.
func (m matter) counter(row, say string, weight int, of func(*FleetSignals) *int64) Symptom {
	s := Symptom{Row: row, Say: say, Weight: weight, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil {
		return s
	}
	if n := of(m.sig.Fleet); n != nil {
		s.Verdict = sandbox.VerdictOf(*n > 0)
		s.Evidence = []sandbox.Evidence{number(say, float64(*n), "", "fleet", m.now)}
	}
	return s
}

func (m matter) oldOnesPile() Symptom {
	return m.counter("R82", "sandboxes over the stuck age", 2, func(f *FleetSignals) *int64 { return f.OverStuckAge })
}

func (m matter) cannotCreate() Symptom {
	return m.counter("R106", "creates that failed", 2, func(f *FleetSignals) *int64 { return f.CreateFailures })
}

// quotaRunsShort is R109: a limit of the account is nearly used up. Room that is left in
// those limits that are told proves nothing about the others.
func (m matter) quotaRunsShort() Symptom {
	s := Symptom{Row: "R109", Say: "a quota of the account is nearly used up", Weight: 3, Support: true, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil || m.sig.Fleet.QuotaUsed == nil {
		return s
	}
	used := *m.sig.Fleet.QuotaUsed
	s.Verdict = sandbox.VerdictOf(used >= m.t.QuotaNear)
	s.Evidence = []sandbox.Evidence{number("quota used", used*100, "%", "quota", m.now)}
	return s
}

// noCleanupSeen gives cleanup two intervals before it is missed, so that one
// late run is no finding.
func (m matter) noCleanupSeen() Symptom {
	s := Symptom{Row: "R83", Say: "no cleanup ran", Weight: 3, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil || !m.sig.Fleet.CleanupRead {
		return s
	}
	seen := m.sig.Fleet.CleanupSeen
	s.Verdict = sandbox.VerdictOf(seen.IsZero() || m.now.Sub(seen) > 2*m.t.CleanupEvery)
	if !seen.IsZero() {
		s.Evidence = []sandbox.Evidence{seconds("since the last cleanup", m.now.Sub(seen), "cleanup log", seen)}
	}
	return s
}

// activeGrows compares the oldest and the newest sample; it takes two of them
// that lie at least one cleanup apart.
func (m matter) activeGrows() Symptom {
	s := Symptom{Row: "R84", Say: "the number of active sandboxes grows", Weight: 2, Verdict: sandbox.Unknown}
	if m.sig.Fleet == nil {
		return s
	}
	history := ordered(m.sig.Fleet.History, m.now)
	if len(history) < 2 {
		return s
	}
	first, last := history[0], history[len(history)-1]
	if last.At.Sub(first.At) < m.t.CleanupEvery {
		return s
	}
	s.Verdict = sandbox.VerdictOf(last.Active > first.Active)
	s.Evidence = []sandbox.Evidence{
		number("active", float64(first.Active), "", "history", first.At),
		number("active", float64(last.Active), "", "history", last.At),
	}
	return s
}

// allProvisioning is R108: none is active, and this one is stuck on its way. A
// lone sandbox that starts is no exhaustion.
func (m matter) allProvisioning() Symptom {
	s := Symptom{Row: "R108", Say: "all sandboxes are stuck in provisioning", Weight: 2, Verdict: sandbox.Unknown}
	f := m.sig.Fleet
	if m.running() { // so not all are
		s.Verdict = sandbox.False
		return s
	}
	if f == nil || f.Active == nil || f.Provisioning == nil {
		return s
	}
	s.Evidence = []sandbox.Evidence{number("in provisioning", float64(*f.Provisioning), "", "stats", m.now)}
	s.Verdict = sandbox.False
	if *f.Active == 0 && *f.Provisioning > 0 && m.s.State == sandbox.StateProvisioning {
		s.Verdict, _ = over(m.s, m.t.ProvisioningAge, m.now)
	}
	return s
}

// missing is R94: the record says running, and the provider has it no more.
func (m matter) missing() sandbox.Verdict {
	if !m.running() {
		return sandbox.Unknown
	}
	return not(m.sig.Exists)
}
