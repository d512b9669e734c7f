package triage

import (
	"math"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// Signals is what was observed of one sandbox beside its record. Everything may
// be missing: nil, zero and the empty verdict mean "not observed".
type Signals struct {
	Looked bool // the sandbox itself was asked, although nothing may have come of it

	Logs  *LogFindings
	Trend *Trend

	Processes *int // programs that run inside, as far as the provider started them

	// SourceFailed says that a control plane which may have seen work could not be
	// asked: whatever else was seen, the sandbox is not known to be silent.
	SourceFailed bool

	// LookFailed says that a look at the sandbox itself failed which may have shown work:
	// what is not known of it then is no reason to judge by age alone.
	LookFailed bool

	Answers sandbox.Verdict // a probe got an answer; False is definite, never a failed look
	Exists  sandbox.Verdict // the provider still has it; False takes two observations apart, one proves no orphan (DESIGN section 7)
	Agrees  sandbox.Verdict // record and real process say the same (ACCEPTANCE R95)

	// Finished says that its work is over by a record: its task has ended, or the program
	// that it was created for has exited. FinishedBy is that record, where it is true.
	Finished   sandbox.Verdict
	FinishedBy sandbox.Evidence
	// Waits says that the agent itself reported the end of its work and waits for its next
	// message: it is idle and not stuck (ACCEPTANCE S2-35).
	Waits sandbox.Verdict

	TracksTasks   bool // the source would name a task or an agent if there were one
	TimeLimitsHit *int // how often its task, or the task that this one resumes, ran into a time limit (R30)

	Fleet *FleetSignals // of the profile it belongs to
}

// looked says that the sandbox itself was asked.
func (sig Signals) looked() bool {
	return sig.Looked || sig.Logs != nil || sig.Trend != nil || sig.Processes != nil || sig.SourceFailed || sig.Answers != ""
}

// lastSign is the latest sign of work that was observed.
type lastSign struct {
	ago    time.Duration
	source string
	known  bool // false = no sign, or one in the future: it proves nothing
	// proof says that a source would have shown a later sign, so that ago is how long
	// the sandbox has been silent.
	proof bool
	// reports says that only what an agent reports would have shown it.
	reports bool
}

// reportsSilence is how long an agent that reports its work may say nothing: a call of
// a tool is reported when it ends. OmoiOS's own monitor takes an agent for stuck after
// as long (OmoiOS, thresholds of its monitor).
const reportsSilence = 15 * time.Minute

// longerThan says that the sandbox is proved to have been silent for longer.
func (l lastSign) longerThan(limit time.Duration) bool {
	return l.proven() && l.ago > limit
}

// proven says that ago is how long the sandbox has been silent.
func (l lastSign) proven() bool { return l.known && l.proof && (!l.reports || l.ago > reportsSilence) }

// within says that a sign of work is no older than limit.
func (l lastSign) within(limit time.Duration) bool { return l.known && l.ago <= limit }

// silence finds the latest sign of work, by log and record. A sandbox whose complete
// log was read and is empty has been silent since it came to be.
func silence(s sandbox.Sandbox, sig Signals, now time.Time) lastSign {
	complete := sig.Logs != nil && sig.Logs.Complete
	proof := s.ActivityBasis.ProvesSilence() || complete
	last, source := s.LastActivityAt, "last_activity_at"
	if sig.Logs != nil && sig.Logs.Last.After(last) {
		last, source = sig.Logs.Last, "log"
	}
	if last.IsZero() && complete && sig.Logs.Lines == 0 {
		age, from := s.Age(now)
		return lastSign{ago: age, source: "empty log", known: from != sandbox.AgeUnknown, proof: true}
	}
	if last.IsZero() || last.After(now) {
		return lastSign{}
	}
	return lastSign{ago: now.Sub(last), source: source, known: true, proof: proof, reports: s.ActivityBasis == sandbox.BasisReports && !complete}
}

// busy says that the processor is at its limit.
func (sig Signals) busy(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.atLimit(t)
}

// busyThroughout says that every sample of the last BusySilence found the processor
// at its limit. It condemns where no source could have shown other work.
func (sig Signals) busyThroughout(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.BusyFor >= t.BusySilence
}

// leaks says that memory grows and is near its limit.
func (sig Signals) leaks(t Thresholds) bool {
	if sig.Trend == nil {
		return false
	}
	share, known := sig.Trend.near()
	return known && share >= t.MemoryNear && sig.Trend.grows(t)
}

// rests says that the processor is known to do nothing.
func (sig Signals) rests(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.CPUPercent != nil && *sig.Trend.CPUPercent < t.CPUIdle
}

// waits says that it does nothing and may wait for something outside: for a peer that
// is seen, or while programs run that nothing else is known of (ACCEPTANCE R48).
func (sig Signals) waits(t Thresholds) bool {
	if !sig.rests(t) {
		return false
	}
	tr := sig.Trend
	unseen := tr.Waiting == "" && tr.OperationsRate == nil
	return !tr.grows(t) && (waitsOutside(tr.Waiting) || unseen) || sig.Processes != nil && *sig.Processes > 0
}

// works says that the processor or the operations move at all.
func (sig Signals) works(t Thresholds) bool {
	if sig.Trend == nil {
		return false
	}
	cpu, ops := sig.Trend.CPUPercent, sig.Trend.OperationsRate
	return cpu != nil && *cpu >= t.CPUIdle || ops != nil && *ops > 0
}

// repeats says that the log goes round in a circle.
func (sig Signals) repeats(t Thresholds) bool {
	return sig.Logs != nil && sig.Logs.Complete && sig.Logs.Repeat.Count >= t.RepeatLines
}

// Evidence helpers: every figure is written once, in one way.

func seconds(what string, d time.Duration, source string, at time.Time) sandbox.Evidence {
	value := decimal(d.Seconds()) + "s"
	if d >= time.Hour { // nobody reads thousands of seconds
		value = sandbox.FormatDuration(d)
	}
	return sandbox.Evidence{What: what, Value: value, Source: source, At: at}
}

func number(what string, v float64, unit, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: decimal(v) + unit, Source: source, At: at}
}

func words(what, value, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: at}
}

// decimal writes at most two digits behind the point, and none that are zero.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
