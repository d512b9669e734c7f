package cron

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Run is one recorded run of cleanup or reconcile.
type Run struct {
	Layer       Layer  // Rule.Layer of its rule; "" = none
	CoverageGap string // why it is no proof of its layer; "" = it is one
	StartedAt   time.Time
	EndedAt     time.Time // zero = it runs, or died
	ExitCode    int
	Error       string   // how it failed; "" = it did not, or that is not known
	Refused     bool     // a guard refused it
	Overrides   []string // the flags that its guards ask for
	Succeeded   []string // the profiles in which it left nothing undone
	// Unowned counts, by profile, the sandboxes that the rule would end and that stay because
	// they have no owner. A profile that the run did not see has no entry.
	Unowned map[string]int
}

// provesLayer says that a run did what its layer is for, in a profile.
func (r Run) provesLayer(profile string) bool {
	return r.CoverageGap == "" && !r.EndedAt.IsZero() && slices.Contains(r.Succeeded, profile)
}

// Expected is what should run, how often, and for which profiles.
type Expected struct {
	Name     Layer   // as Status shows it
	Layers   []Layer // runs of any of these count
	Every    time.Duration
	Profiles []string // a success is one in all of them, by one run or by several
	// Unmeasured are profiles whose quota is unknown, so that the layer does not apply.
	Unmeasured []string
}

// Expect is the expectation of one layer.
func Expect(l Layer, profiles []string) Expected {
	return Expected{Name: l, Layers: []Layer{l}, Every: Every(l), Profiles: profiles}
}

// Status is the state of a layer.
type Status struct {
	Layer       Layer
	Every       time.Duration
	LastRun     time.Time      // when the newest run began; zero = none is recorded
	LastSuccess time.Time      // since when every profile has had a good run; zero = one of them never had
	LastExit    *int           // of the newest run, if it has ended
	Unowned     map[string]int // what stays because it has no owner, by profile
	Overdue     bool           // the runs are missing or fail
	Ran         Layer          // of the newest run
	Refused     bool           // a guard refused the newest run
	Overrides   []string       // the flags that the guards of the newest run ask for
	Verdict     sandbox.Verdict
	Message     string
}

// Limit is how long a job that should run so often may be without a success: two periods, so that
// one late run is no finding.
func Limit(every time.Duration) time.Duration { return 2 * every }

// Late reports whether the last success is too long ago; zero = there is none.
func Late(last time.Time, every time.Duration, now time.Time) bool {
	return last.IsZero() || now.Sub(last) > Limit(every)
}

// skewed is how far a record may lie in the future.
const skewed = time.Minute

// Judge says of each layer whether it runs: true when each of its profiles had a success within
// two periods and nothing stays for want of an owner, false otherwise, unknown without any
// record. Runs come in any order.
func Judge(expected []Expected, runs []Run, now time.Time) []Status {
	list := make([]Status, 0, len(expected))
	for _, e := range expected {
		list = append(list, e.judgeRuns(runs, now))
	}
	return list
}

func (e Expected) judgeRuns(runs []Run, now time.Time) Status {
	s := Status{Layer: e.Name, Every: e.Every, Unowned: map[string]int{}}
	mine := slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !slices.Contains(e.Layers, r.Layer) })
	slices.SortStableFunc(mine, func(a, b Run) int { return b.StartedAt.Compare(a.StartedAt) })
	if len(e.Profiles) == 0 {
		s.Verdict, s.Message = sandbox.Unknown, "no profile reports how much of its quota is used"
		return s
	}
	if len(mine) == 0 {
		s.Verdict, s.Message = sandbox.Unknown, "no run is recorded"
		return s
	}
	last := mine[0]
	s.LastRun = last.StartedAt
	s.Ran, s.Refused, s.Overrides = last.Layer, last.Refused, last.Overrides
	if !last.EndedAt.IsZero() {
		s.LastExit = &last.ExitCode
	}
	behind := e.findSuccesses(&s, mine, now)
	since := now.Sub(s.LastSuccess)
	switch {
	case s.LastSuccess.IsZero():
		s.Verdict, s.Message = sandbox.False, "it has never succeeded"+e.overdueProfiles(behind)+"; it last ran "+timeAgo(now.Sub(s.LastRun))+last.describeOutcome()
	case since < -skewed:
		s.Verdict, s.Message = sandbox.Unknown, "the last success is recorded in the future: check the clock of this machine"
	case Late(s.LastSuccess, e.Every, now):
		s.Verdict, s.Message = sandbox.False, fmt.Sprintf(
			"overdue: it last succeeded%s %s, and should succeed every %s", e.overdueProfiles(behind), timeAgo(since), sandbox.FormatDuration(e.Every),
		)
		if s.LastRun.After(s.LastSuccess) {
			s.Message += "; it last ran " + timeAgo(now.Sub(s.LastRun)) + last.describeOutcome()
		}
	default:
		s.Verdict, s.Message = sandbox.True, "it last succeeded "+timeAgo(since)
	}
	s.Overdue = s.Verdict == sandbox.False
	s.noteUnowned(mine, e.Profiles, now.Sub(s.LastRun))
	if s.Verdict == sandbox.True && len(e.Unmeasured) > 0 {
		s.Verdict = sandbox.Unknown
		s.Message += "; quota use is unknown for " + strings.Join(e.Unmeasured, ", ")
	}
	return s
}

// findSuccesses sets LastSuccess to the oldest of the profiles' newest successes and
// gives the profiles that are overdue.
func (e Expected) findSuccesses(s *Status, newestFirst []Run, now time.Time) (behind []string) {
	for i, p := range e.Profiles {
		var at time.Time
		for _, r := range newestFirst {
			if r.provesLayer(p) && r.EndedAt.After(at) {
				at = r.EndedAt
			}
		}
		if Late(at, e.Every, now) {
			behind = append(behind, p)
		}
		if i == 0 || at.Before(s.LastSuccess) {
			s.LastSuccess = at
		}
	}
	return behind
}

// overdueProfiles names the profiles that are overdue, unless all of them are.
func (e Expected) overdueProfiles(behind []string) string {
	if len(behind) == 0 || len(behind) == len(e.Profiles) {
		return ""
	}
	return " at " + strings.Join(behind, ", ")
}

// noteUnowned says how many sandboxes stay because nobody owns them: a layer that leaves them
// is not in order. age is that of its last run.
func (s *Status) noteUnowned(runs []Run, profiles []string, age time.Duration) {
	var parts []string
	total := 0
	for _, p := range profiles {
		if n := Unowned(runs, p); n > 0 {
			s.Unowned[p], total = n, total+n
			parts = append(parts, fmt.Sprintf("%s %d", p, n))
		}
	}
	if total == 0 {
		return
	}
	s.Verdict = sandbox.False
	what := "stuck ones"
	if s.Layer != Stuck { // a rule by age selects what works as well
		what = "sandboxes"
	}
	s.Message = fmt.Sprintf("it skipped %d "+what+" because nobody owns them (%s); %s", total, strings.Join(parts, ", "), s.Message)
	if s.LacksOwner() && age <= Limit(s.Every) {
		s.Overdue = false
	}
}

// LacksOwner reports whether it runs, and leaves only what has no owner.
func (s Status) LacksOwner() bool {
	return len(s.Unowned) > 0 && s.LastExit != nil && (*s.LastExit == 0 || Run{ExitCode: *s.LastExit, Refused: s.Refused}.lacksOwner())
}

// lacksOwner reports whether a run that nobody watched was good but for what has no owner: it ends with
// the code of a refusal although no guard has refused it.
func (r Run) lacksOwner() bool { return !r.Refused && r.ExitCode == fault.KindRefused.Row().Code }

// Unowned is how many sandboxes of a profile stay because nobody owns them, by the newest of
// these runs that saw the profile and selected no less than its layer.
func Unowned(runs []Run, profile string) int {
	n, at := 0, time.Time{}
	for _, r := range runs {
		if left, seen := r.Unowned[profile]; seen && r.CoverageGap == "" && r.StartedAt.After(at) {
			n, at = left, r.StartedAt
		}
	}
	return n
}

// describeOutcome is how a run ended, and why it is no success all the same.
func (r Run) describeOutcome() string {
	switch {
	case r.EndedAt.IsZero():
		return " and has not ended"
	case r.CoverageGap != "":
		return ", which does not count: " + r.CoverageGap
	case r.Refused:
		return " and a guard refused it: " + r.Error
	case r.Error != "" && !r.lacksOwner(): // what it has left stands beside it
		return fmt.Sprintf(" and ended with exit %d: %s", r.ExitCode, r.Error)
	}
	return fmt.Sprintf(" and ended with exit %d", r.ExitCode)
}

func timeAgo(d time.Duration) string { return sandbox.FormatDuration(max(0, d)) + " ago" }
