package triage

import (
	"slices"
	"time"
)

// FleetSignals is what was observed of all sandboxes of one profile. Nil means not
// observed; an incomplete listing leaves its counts nil.
type FleetSignals struct {
	Active         *int64
	Provisioning   *int64
	Terminating    *int64
	TotalCreated   *int64
	TotalDestroyed *int64
	TimedOut       *int64 // of TotalDestroyed, how many ended by a time limit
	// Attempts and AttemptsTimedOut count the recent attempts of tasks; the time-out rate
	// is computed from them where the provider has no counters.
	Attempts         *int64
	AttemptsTimedOut *int64
	AttemptsInactive *int64 // of Attempts, how many inactivity ended
	// Stops counts the stops of recent tasks that have an outcome, and StopsFailed those
	// without a verified end.
	Stops       *int64
	StopsFailed *int64

	History []ActiveCount // samples of Active, in any order
	OverFor OverFor       // by the samples of days; zero also where none were read

	OverStuckAge        *int64 // running sandboxes older than the stuck age
	OverProvisioningAge *int64 // sandboxes in provisioning for longer than that may take; nil = not counted

	Missing *int64 // of the running ones that were looked at, those that do not exist; nil = none was looked at

	CleanupSeen     time.Time // when cleanup last succeeded, by its runs or its log; zero with CleanupRead = never
	CleanupRead     bool      // the cleanup log or journal was read
	CleanupFailures *int64    // failed runs or items since the last successful run
	CleanupNotFound *int64    // of the cleanup log, how many removals failed because there was no sandbox; nil = no log
	CleanupRefusals int64     // runs since the last successful one that a guard refused; they are no failures
	CreateFailures  *int64    // creates that failed recently; nil = none was tried
	QuotaUsed       *float64  // use of the quota with the highest use, 1 = full
	Quota           *QuotaUse // that quota; nil where only the share is known
	MaxSandboxes    *int64    // the configured limit of running ones; nil = none
}

const unitSandboxes = "sandboxes"

// QuotaUse is how much of a limit of the account is used.
type QuotaUse struct {
	Used, Limit float64
	Unit        string // "sandboxes", "cores", "MiB"
}

// ActiveCount is one sample of how many sandboxes were active.
type ActiveCount struct {
	At     time.Time
	Active int64
}

// Growth returns the oldest and the newest sample of how many were active; false = they are not at
// least so far apart.
func (f FleetSignals) Growth(apart time.Duration, now time.Time) (first, last ActiveCount, known bool) {
	history := f.Past(now)
	if len(history) < 2 {
		return first, last, false
	}
	first, last = history[0], history[len(history)-1]
	return first, last, last.At.Sub(first.At) >= apart
}

// Past are the samples of History oldest first, without those from the future.
func (f FleetSignals) Past(now time.Time) []ActiveCount {
	past := slices.DeleteFunc(slices.Clone(f.History), func(h ActiveCount) bool { return h.At.IsZero() || h.At.After(now) })
	slices.SortStableFunc(past, func(a, b ActiveCount) int { return a.At.Compare(b.At) })
	return past
}

// fewAttempts is the least number of attempts that gives a rate: one of 20 that times out
// is the limit of 5 %.
const fewAttempts = 20

// TimeoutRate is the share of ended sandboxes that a time limit ended, 0 to 1, by the
// provider's counters, else by the attempts of tasks; nil while too few have ended or the
// counters contradict each other.
func (f FleetSignals) TimeoutRate() *float64 {
	if f.CountsTimeouts() {
		return countShare(*f.TimedOut, *f.TotalDestroyed)
	}
	return shareOfMany(f.AttemptsTimedOut, f.Attempts)
}

// CountsTimeouts reports whether the provider itself counts what its time limit ended.
func (f FleetSignals) CountsTimeouts() bool { return f.TimedOut != nil && f.TotalDestroyed != nil }

// Remaining is created minus destroyed: as many must exist as Present says (R18). A difference is
// evidence of a leak, or of lost records. Nil = not known, as below.
func (f FleetSignals) Remaining() *int64 {
	if f.TotalCreated == nil || f.TotalDestroyed == nil {
		return nil
	}
	return new(*f.TotalCreated - *f.TotalDestroyed)
}

// Present counts the sandboxes that exist and have not ended.
func (f FleetSignals) Present() *int64 {
	if f.Active == nil || f.Provisioning == nil || f.Terminating == nil {
		return nil
	}
	return new(*f.Active + *f.Provisioning + *f.Terminating)
}

// InactivityRate is the share of recent attempts that inactivity ended (S1-53); nil while there
// are too few.
func (f FleetSignals) InactivityRate() *float64 {
	return shareOfMany(f.AttemptsInactive, f.Attempts)
}

// StopFailureRate is the share of recent stops without a verified end (S1-52); nil while there are
// too few.
func (f FleetSignals) StopFailureRate() *float64 { return shareOfMany(f.StopsFailed, f.Stops) }

// shareOfMany is a share of at least fewAttempts; nil else.
func shareOfMany(part, whole *int64) *float64 {
	if part == nil || whole == nil || *whole < fewAttempts {
		return nil
	}
	return countShare(*part, *whole)
}

func countShare(part, whole int64) *float64 {
	if whole <= 0 || part < 0 || part > whole {
		return nil
	}
	return new(float64(part) / float64(whole))
}
