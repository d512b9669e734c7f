package triage

import (
	"cmp"
	"math"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Thresholds are the limits that the rules compare with. A healthy run may last 1,397 s
// (S2-26), so they are set per profile and per agent type, see Book.
type Thresholds struct {
	WatchAge        time.Duration // running longer is worth a look (strict >; R11)
	StuckAge        time.Duration // running longer without a sign of life is stuck (strict >; R26)
	ProvisioningAge time.Duration // provisioning longer is stuck (strict >; R28)
	EndingAge       time.Duration // terminating longer is stuck (strict >; an estimate, no requirement has a number)
	Inactivity      time.Duration // a longer silence is no sign of life (strict >; S1-13)
	BusySilence     time.Duration // how long a busy processor may excuse silence (S1-14: the absolute limit of a command)
	Sustained       time.Duration // how long a fleet counter must be high to count as sustained (R10)
	CleanupEvery    time.Duration // interval at which cleanup is expected to run (R53)
	EscalateFor     time.Duration // how long EscalateActive must be exceeded (R139)

	AgeOnly bool // unknown activity counts as none (`activity: age-only`)

	CPUBusy        float64 // percent of one core; at least this is busy (R45)
	CPUIdle        float64 // percent of one core; less is idle (R48, R71)
	OperationsHigh float64 // operations per second; at least this is many (R46: 150,000 in 45 s is 3,333/s; a third of that)
	MemorySlope    float64 // MiB per minute; at least this is growth (an estimate, R49 has no number)
	MemoryGrowth   float64 // MiB; less growth is noise (an estimate)
	MemoryNear     float64 // share of the limit from which memory is near it

	QuotaNear float64 // share of a quota from which it is nearly used up (R109; 80 %)

	RepeatLines     int     // this many equal lines within the last 50 are a loop (R36; an estimate)
	RepeatTimeouts  int     // this many time limits hit by one sandbox are repeated (R30)
	FailedProbes    int     // this many failed probes in a row mean that nothing inside answers (S1-59)
	ActiveMax       int     // more active sandboxes are critical (strict >; R4, R10)
	ActiveNormal    int     // fewer are active under normal load (strict <; R125)
	EscalateActive  int     // more for EscalateFor are escalated (strict >; R139)
	Given           Given   // which of these three were configured
	TimeoutRateHigh float64 // 0..1; above is an alert (strict >; R3, R12)
	TimeoutRateGood float64 // 0..1; below is healthy (strict <; R128), between the two is degraded
}

// DefaultThresholds has the figures of the runbook where it gives them.
func DefaultThresholds() Thresholds {
	return Thresholds{
		WatchAge:        5 * time.Minute,
		StuckAge:        10 * time.Minute,
		ProvisioningAge: 5 * time.Minute,
		EndingAge:       10 * time.Minute,
		Inactivity:      60 * time.Second,
		BusySilence:     5 * time.Minute,
		Sustained:       5 * time.Minute,
		CleanupEvery:    5 * time.Minute,
		EscalateFor:     30 * time.Minute,
		CPUBusy:         95,
		CPUIdle:         1,
		OperationsHigh:  1000,
		MemorySlope:     10,
		MemoryGrowth:    4,
		MemoryNear:      0.9,
		QuotaNear:       0.8,
		RepeatLines:     20,
		RepeatTimeouts:  2,
		FailedProbes:    1,
		ActiveMax:       20,
		ActiveNormal:    5,
		EscalateActive:  50,
		TimeoutRateHigh: 0.05,
		TimeoutRateGood: 0.02,
	}
}

// Scaled multiplies every duration, for a drill that compresses time. Rates, shares and
// counts stay. A factor that is not a positive number changes nothing.
func (t Thresholds) Scaled(factor float64) Thresholds {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return t
	}
	for _, d := range []*time.Duration{
		&t.WatchAge, &t.StuckAge, &t.ProvisioningAge, &t.EndingAge, &t.Inactivity, &t.BusySilence, &t.Sustained, &t.CleanupEvery, &t.EscalateFor,
	} {
		*d = max(1, time.Duration(min(float64(*d)*factor, math.MaxInt64/2)))
	}
	return t
}

// With replaces what o sets; zero fields of o keep the value of t.
func (t Thresholds) With(o Thresholds) Thresholds {
	return Thresholds{
		WatchAge:        cmp.Or(o.WatchAge, t.WatchAge),
		StuckAge:        cmp.Or(o.StuckAge, t.StuckAge),
		ProvisioningAge: cmp.Or(o.ProvisioningAge, t.ProvisioningAge),
		EndingAge:       cmp.Or(o.EndingAge, t.EndingAge),
		Inactivity:      cmp.Or(o.Inactivity, t.Inactivity),
		BusySilence:     cmp.Or(o.BusySilence, t.BusySilence),
		Sustained:       cmp.Or(o.Sustained, t.Sustained),
		CleanupEvery:    cmp.Or(o.CleanupEvery, t.CleanupEvery),
		EscalateFor:     cmp.Or(o.EscalateFor, t.EscalateFor),
		AgeOnly:         cmp.Or(o.AgeOnly, t.AgeOnly),
		CPUBusy:         cmp.Or(o.CPUBusy, t.CPUBusy),
		CPUIdle:         cmp.Or(o.CPUIdle, t.CPUIdle),
		OperationsHigh:  cmp.Or(o.OperationsHigh, t.OperationsHigh),
		MemorySlope:     cmp.Or(o.MemorySlope, t.MemorySlope),
		MemoryGrowth:    cmp.Or(o.MemoryGrowth, t.MemoryGrowth),
		MemoryNear:      cmp.Or(o.MemoryNear, t.MemoryNear),
		QuotaNear:       cmp.Or(o.QuotaNear, t.QuotaNear),
		RepeatLines:     cmp.Or(o.RepeatLines, t.RepeatLines),
		RepeatTimeouts:  cmp.Or(o.RepeatTimeouts, t.RepeatTimeouts),
		FailedProbes:    cmp.Or(o.FailedProbes, t.FailedProbes),
		ActiveMax:       cmp.Or(o.ActiveMax, t.ActiveMax),
		ActiveNormal:    cmp.Or(o.ActiveNormal, t.ActiveNormal),
		EscalateActive:  cmp.Or(o.EscalateActive, t.EscalateActive),
		Given:           t.Given.with(o),
		TimeoutRateHigh: cmp.Or(o.TimeoutRateHigh, t.TimeoutRateHigh),
		TimeoutRateGood: cmp.Or(o.TimeoutRateGood, t.TimeoutRateGood),
	}
}

// ThresholdBook holds the thresholds of every profile and agent type.
type ThresholdBook struct {
	Default   Thresholds
	Overrides []Override
}

// Override changes some thresholds for a profile, an agent type, or one agent
// type of one profile. An empty name stands for all.
type Override struct {
	Profile   string
	AgentType string     // letter case is ignored
	Set       Thresholds // zero fields change nothing
}

// For returns the thresholds of a sandbox: the default, then the overrides of its profile,
// of its agent type, and of both together. Among equally narrow overrides the later wins.
func (b ThresholdBook) For(s sandbox.Sandbox) Thresholds {
	t := b.Default
	for _, narrow := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		for _, o := range b.Overrides {
			if (o.Profile != "") != narrow[0] || (o.AgentType != "") != narrow[1] {
				continue
			}
			if (o.Profile == "" || o.Profile == s.Provider) && (o.AgentType == "" || strings.EqualFold(o.AgentType, s.AgentType)) {
				t = t.With(o.Set)
			}
		}
	}
	t.WatchAge = min(t.WatchAge, t.StuckAge)         // what is stuck is worth a look
	t.BusySilence = max(t.BusySilence, t.Inactivity) // a busy sandbox is not stuck before an idle one
	return t.scaledToCPU(s.Limits)
}

// scaledToCPU adapts the CPU limits to a sandbox that may use less than a core: limited to
// a tenth, an endless loop shows 10 %.
func (t Thresholds) scaledToCPU(l sandbox.Limits) Thresholds {
	if l.CPU != nil && *l.CPU > 0 && *l.CPU < 1 {
		t.CPUBusy *= *l.CPU
	}
	return t
}
