package cleanup

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Status says whether cleanup runs as often as it should (ACCEPTANCE R53-R57, R127).
type Status struct {
	LastRun     time.Time // start of the newest run; zero = none is recorded
	LastSuccess time.Time // end of the newest run that left nothing undone; a dry or refused run is none
	Every       time.Duration
	Verdict     sandbox.Verdict
	Message     string
}

// overdueAfter is how many periods may pass without a success.
const overdueAfter = 2

// StatusOf judges runs, the newest first. Profile limits it to one; "" = all that a
// run was about.
func StatusOf(runs []History, profile string, every time.Duration, now time.Time) Status {
	s := Status{Every: every}
	for _, h := range runs {
		if s.LastRun.IsZero() {
			s.LastRun = h.StartedAt
		}
		if s.LastSuccess.IsZero() && h.succeeded(profile) {
			s.LastSuccess = h.EndedAt
		}
	}
	s.Verdict, s.Message = s.judge(runs, now)
	return s
}

func (h History) succeeded(profile string) bool {
	if profile != "" {
		return h.Succeeded(profile)
	}
	return h.End != nil && h.End.ExitCode == 0 && !h.End.Refused
}

func (s Status) judge(runs []History, now time.Time) (sandbox.Verdict, string) {
	spell := func(at time.Time) string { return sandbox.FormatDuration(now.Sub(at)) + " ago" }
	switch {
	case len(runs) == 0:
		return sandbox.False, "no run is recorded: the job is not running, or it runs elsewhere"
	case s.LastSuccess.IsZero() && now.Sub(s.LastRun) > overdueAfter*s.Every:
		return sandbox.False, "the last run was " + spell(s.LastRun) + ", and no recorded one succeeded"
	case s.LastSuccess.IsZero():
		return sandbox.False, "it runs, and no recorded run succeeded: " + runs[0].trouble()
	case now.Sub(s.LastSuccess) <= overdueAfter*s.Every:
		return sandbox.True, "the last success was " + spell(s.LastSuccess)
	case now.Sub(s.LastRun) > overdueAfter*s.Every:
		return sandbox.False, fmt.Sprintf("the last run was %s; one is expected every %s", spell(s.LastRun), sandbox.FormatDuration(s.Every))
	}
	return sandbox.False, "the last success was " + spell(s.LastSuccess) + ", and runs since failed: " + runs[0].trouble()
}

// trouble is how a run failed.
func (h History) trouble() string {
	switch {
	case h.End == nil:
		return "it was cut off"
	case h.End.Error != "":
		return h.End.Error
	}
	return fmt.Sprintf("exit %d", h.End.ExitCode)
}
