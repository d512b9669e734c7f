package triage

import (
	"math"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// Signals is what was observed of one sandbox in addition to its record: nil, zero and
// the empty verdict mean "not observed".
type Signals struct {
	Looked bool // the sandbox itself was asked, whatever the result

	Logs  *LogFindings
	Trend *Trend

	Processes *int // processes that run inside, as far as the provider started them

	// SourceFailed says that a control plane which might have seen work failed to answer:
	// the sandbox is then not known to be silent.
	SourceFailed bool

	// LookFailed says that a query of the sandbox itself failed which might have shown
	// work: age alone must not decide then.
	LookFailed bool

	Answers sandbox.Verdict // a probe got an answer; False is definite, never a failed query
	Exists  sandbox.Verdict // the provider still has it; False needs two observations some time apart
	Agrees  sandbox.Verdict // record and real process agree (R95)

	// Finished says that its work is over according to a record: its task has ended, or the
	// program that it was created for has exited. FinishedBy is that record.
	Finished   sandbox.Verdict
	FinishedBy sandbox.Evidence
	// Waits says that the agent itself reported the end of its work and waits for its next
	// message: it is idle and not stuck (S2-35).
	Waits sandbox.Verdict

	LastBeatAt time.Time // of the newest heartbeat of its worker, by a control plane; zero = none is known

	// ReportedSilence is how long its agent has reported no work to a control plane, by that one's clock alone:
	// from the last work to the newest heartbeat. 0 = not proved.
	ReportedSilence time.Duration

	TracksTasks   bool // the source reports the task or agent of a sandbox if there is one
	TimeLimitsHit *int // how often its task, or the task that this one resumes, hit a time limit (R30)

	Fleet *FleetSignals // of the profile it belongs to
}

// anyObserved reports whether the sandbox itself was asked.
func (sig Signals) anyObserved() bool {
	return sig.Looked || sig.Logs != nil || sig.Trend != nil || sig.Processes != nil || sig.SourceFailed || sig.Answers != "" || sig.Exists == sandbox.False
}

// lastSign is the latest sign of work that was observed.
type lastSign struct {
	ago    time.Duration
	source string
	known  bool // false = no sign, or one in the future, which proves nothing
	// proof says that a source would have shown a later sign, and has shown none for silence.
	proof   bool
	silence time.Duration
	// reports says that only the agent's own reports would have shown a later sign.
	reports bool
}

// reportsSilence is how long an agent that reports its work may be silent: a tool call is
// reported when it ends. OmoiOS's own monitor uses the same limit.
const reportsSilence = 15 * time.Minute

// silentLonger reports whether the sandbox is proved to have been silent for longer.
func (l lastSign) silentLonger(limit time.Duration) bool {
	return l.provenSilent() && l.silence > limit
}

// provenSilent reports whether a source would have shown a later sign.
func (l lastSign) provenSilent() bool {
	return l.known && l.proof && (!l.reports || l.silence > reportsSilence)
}

// seenWithin reports whether a sign of work is no older than limit.
func (l lastSign) seenWithin(limit time.Duration) bool { return l.known && l.ago <= limit }

// latestSign finds the latest sign of work in log and record. A sandbox with a complete
// and empty log has been silent since its creation.
func latestSign(s sandbox.Sandbox, sig Signals, now time.Time) lastSign {
	byLog := sig.Logs.provesSilence()
	last, source := s.LastActivityAt, "last_activity_at"
	if sig.Logs != nil && sig.Logs.Last.After(last) {
		last, source = sig.Logs.Last, "log"
	}
	if byLog && !sig.Logs.ReadAt.IsZero() && sig.Logs.ReadAt.Before(now) && !last.After(sig.Logs.ReadAt) {
		now = sig.Logs.ReadAt // of the time since then it shows nothing
	}
	if last.IsZero() && byLog && sig.Logs.Lines == 0 {
		age, from := s.Age(now)
		return lastSign{ago: age, silence: age, source: "empty log", known: from != sandbox.AgeUnknown, proof: true}
	}
	if last.IsZero() || last.After(now) {
		return lastSign{}
	}
	sign := lastSign{ago: now.Sub(last), source: source, known: true}
	switch {
	case byLog, s.ActivityBasis == sandbox.BasisOutput:
		sign.proof, sign.silence = true, sign.ago
	case s.ActivityBasis == sandbox.BasisReports:
		sign.proof, sign.silence, sign.reports = sig.ReportedSilence > 0, min(sign.ago, sig.ReportedSilence), true
	}
	return sign
}

func (sig Signals) cpuBusy(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.AtLimit(t)
}

// busyThroughout reports whether every sample of the last BusySilence found the processor
// at its limit. It makes a sandbox stuck where no source could have shown other work.
func (sig Signals) busyThroughout(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.BusyFor >= t.BusySilence
}

// busyWithoutOperations reports whether the processor is at its limit while the count of operations
// stands still over the observation.
func (sig Signals) busyWithoutOperations(t Thresholds) bool {
	return sig.cpuBusy(t) && sig.Trend.OperationsRate != nil && *sig.Trend.OperationsRate == 0
}

// leaksMemory reports whether memory grows and is near its limit.
func (sig Signals) leaksMemory(t Thresholds) bool {
	if sig.Trend == nil {
		return false
	}
	share, known := sig.Trend.memoryShare()
	return known && share >= t.MemoryNear && sig.Trend.memoryGrows(t)
}

// cpuIdle reports whether the processor is known to be idle.
func (sig Signals) cpuIdle(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.CPUPercent != nil && *sig.Trend.CPUPercent < t.CPUIdle
}

// waitsIdle reports whether the sandbox is idle and may wait for something outside: for a
// known peer, or with processes of which nothing else is known (R48).
func (sig Signals) waitsIdle(t Thresholds) bool {
	if !sig.cpuIdle(t) {
		return false
	}
	tr := sig.Trend
	unseen := tr.Waiting == "" && tr.OperationsRate == nil
	return !tr.memoryGrows(t) && (waitsOutside(tr.Waiting) || unseen) || sig.Processes != nil && *sig.Processes > 0
}

// showsWork reports whether processor or operations show any work.
func (sig Signals) showsWork(t Thresholds) bool { return sig.Trend != nil && sig.Trend.showsWork(t) }

func (tr Trend) showsWork(t Thresholds) bool {
	cpu, ops := tr.CPUPercent, tr.OperationsRate
	return cpu != nil && *cpu >= t.CPUIdle || ops != nil && *ops > 0 || tr.NewestCPU != nil && *tr.NewestCPU >= newestAtWork
}

// faint reports whether the only work is a mean of the processor that is also reached without any: the daemons of a
// sandbox use up to a percent, and the ticks of a machine add as much. It is no sign against a proof.
func (tr *Trend) faint(t Thresholds) bool {
	ops := tr.OperationsRate
	return tr.CPUPercent != nil && *tr.CPUPercent < min(newestAtWork, t.CPUBusy) &&
		(ops == nil || *ops == 0) && (tr.NewestCPU == nil || *tr.NewestCPU < newestAtWork)
}

// newestAtWork, in percent of a core, is the processor time of the newest sample that shows work
// whatever the mean of the samples is. It is above what a VM without work uses, and a mean
// over minutes hides an agent that has just begun.
const newestAtWork = 5

// ShowsWork reports whether samples prove that a running sandbox is at work, so that no other
// observation can make its verdict stuck: they show work, and no processor at its limit.
func ShowsWork(samples []sandbox.Usage, t Thresholds) bool {
	tr := TrendOf(samples, t)
	return tr.showsWork(t) && !tr.faint(t) && !tr.AtLimit(t) && tr.BusyFor == 0
}

// SampleShowsWork is ShowsWork for the newest sample alone, whatever earlier samples say. It holds
// where no source could prove silence.
func SampleShowsWork(newest sandbox.Usage, t Thresholds) bool {
	return newest.CPUPercent != nil && *newest.CPUPercent >= newestAtWork && *newest.CPUPercent < t.CPUBusy
}

// SampleAtLimit reports whether one sample found the processor at its limit, be it at work or in a loop.
func SampleAtLimit(u sandbox.Usage, t Thresholds) bool {
	return u.CPUPercent != nil && *u.CPUPercent >= t.CPUBusy
}

// OutputShowsWork reports whether the end of its log shows a sandbox at work whose processor is at its limit, so that no
// other observation can make its verdict stuck: there is output within the silence that makes a busy one stuck, and no
// line is repeated.
func OutputShowsWork(s sandbox.Sandbox, found LogFindings, t Thresholds, now time.Time) bool {
	sig := Signals{Logs: &found}
	return latestSign(s, sig, now).seenWithin(t.BusySilence) && !sig.repeatsLines(t)
}

func (sig Signals) repeatsLines(t Thresholds) bool {
	return sig.Logs != nil && sig.Logs.Complete && sig.Logs.Repeat.Count >= t.RepeatLines
}

// DurationEvidence is a duration as evidence; each kind of figure has one format.
func DurationEvidence(what string, d time.Duration, source string, at time.Time) sandbox.Evidence {
	value := FormatDecimal(d.Seconds()) + "s"
	if d >= 2*time.Minute { // hundreds of seconds are not readable
		value = sandbox.FormatDuration(d)
	}
	return sandbox.Evidence{What: what, Value: value, Source: source, At: at}
}

// NumberEvidence is a number as evidence, with its unit behind it.
func NumberEvidence(what string, v float64, unit, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: FormatDecimal(v) + unit, Source: source, At: at}
}

func textEvidence(what, value, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: at}
}

// FormatDecimal writes at most two decimals, without trailing zeros.
func FormatDecimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
