package triage

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// ending is a sandbox whose end began so long ago by its provider, seenEnding one that sbx has seen so.
func ending(ago time.Duration) sandbox.Sandbox {
	return sandbox.Sandbox{State: sandbox.StateTerminating, EndingAt: noon().Add(-ago)}
}

func seenEnding(ago time.Duration) sandbox.Sandbox {
	return sandbox.Sandbox{State: sandbox.StateTerminating, EndingSeenAt: noon().Add(-ago)}
}

// old is a running sandbox of some age, with nothing else known.
func old(age time.Duration) sandbox.Sandbox {
	return sandbox.Sandbox{Provider: "p", ID: "x", State: sandbox.StateRunning, CreatedAt: noon().Add(-age), Activity: sandbox.Unknown}
}

func with(s sandbox.Sandbox, change func(*sandbox.Sandbox)) sandbox.Sandbox {
	change(&s)
	return s
}

// quietFor is a log whose last line is so old.
func quietFor(d time.Duration) *LogFindings {
	return &LogFindings{Complete: true, Lines: 3, Last: noon().Add(-d)}
}

func trend(cpuPercent, opsRate float64, waiting string) *Trend {
	return new(TrendOf(at2(cpuPercent, opsRate, waiting), DefaultThresholds()))
}

func TestStuck(t *testing.T) {
	t.Parallel()
	const none = -1
	limit, hour := 10*time.Minute, time.Hour
	inState := func(state sandbox.State, age time.Duration) sandbox.Sandbox {
		return with(old(age), func(s *sandbox.Sandbox) { s.State = state })
	}
	activity := func(v sandbox.Verdict) sandbox.Sandbox {
		return with(old(hour), func(s *sandbox.Sandbox) { s.Activity = v })
	}
	seen := func(state sandbox.State, ago time.Duration) sandbox.Sandbox {
		return sandbox.Sandbox{State: state, FirstSeenAt: noon().Add(-ago)}
	}
	for name, tc := range map[string]struct {
		s    sandbox.Sandbox
		sig  Signals
		want sandbox.Verdict
		say  string
	}{
		// age
		"just over, silent": {old(limit + 1), Signals{Logs: quietFor(limit)}, sandbox.True, "age, silent"},
		"exactly, silent":   {old(limit), Signals{Logs: quietFor(limit)}, sandbox.False, "young"},
		"age alone":         {old(hour), Signals{Looked: true}, sandbox.Unknown, "activity_unknown"},
		"nobody looked":     {old(hour), Signals{}, sandbox.Unknown, "not_looked"},
		"no age":            {sandbox.Sandbox{State: sandbox.StateRunning}, Signals{Logs: quietFor(hour)}, sandbox.Unknown, "age_unknown"},
		"future age":        {old(-hour), Signals{Logs: quietFor(hour)}, sandbox.Unknown, "age_unknown"},
		"seen long ago":     {seen(sandbox.StateRunning, hour), Signals{Logs: quietFor(hour)}, sandbox.True, "age, silent"},
		"seen just now":     {seen(sandbox.StateRunning, time.Minute), Signals{Logs: quietFor(hour)}, sandbox.Unknown, "age_unknown"},

		// signs of life
		"provider says active":   {activity(sandbox.True), Signals{}, sandbox.False, "shows_life"},
		"provider says inactive": {activity(sandbox.False), Signals{Looked: true}, sandbox.True, "age, inactive"},
		"inactive, but CPU":      {activity(sandbox.False), Signals{Trend: trend(20, none, "")}, sandbox.False, "shows_life"},
		"inactive, but writes":   {activity(sandbox.False), Signals{Logs: quietFor(time.Second)}, sandbox.False, "shows_life"},
		"silent exactly":         {old(hour), Signals{Logs: quietFor(time.Minute)}, sandbox.False, "shows_life"},
		"silent just over":       {old(hour), Signals{Logs: quietFor(time.Minute + 1)}, sandbox.True, "age, silent"},
		"record is newer":        {with(old(hour), func(s *sandbox.Sandbox) { s.LastActivityAt, s.ActivityBasis = noon(), sandbox.BasisOutput }), Signals{Logs: quietFor(hour)}, sandbox.False, "shows_life"},
		"record only":            {with(old(hour), func(s *sandbox.Sandbox) { s.LastActivityAt, s.ActivityBasis = noon().Add(-hour), sandbox.BasisOutput }), Signals{Looked: true}, sandbox.True, "age, silent"},
		"activity in the future": {with(old(hour), func(s *sandbox.Sandbox) { s.LastActivityAt, s.ActivityBasis = noon().Add(hour), sandbox.BasisOutput }), Signals{Looked: true}, sandbox.Unknown, "activity_unknown"},
		"log without times":      {old(hour), Signals{Logs: &LogFindings{Complete: true, Lines: 9}}, sandbox.Unknown, "activity_unknown"},
		"empty log":              {old(hour), Signals{Logs: &LogFindings{Complete: true}}, sandbox.True, "age, silent"},
		"silent, works":          {old(hour), Signals{Logs: quietFor(hour), Trend: trend(20, none, "")}, sandbox.False, "shows_life"},
		"silent, operations":     {old(hour), Signals{Logs: quietFor(hour), Trend: trend(0, 5, "")}, sandbox.False, "shows_life"},
		"rests, log unknown":     {old(hour), Signals{Trend: trend(0, none, "")}, sandbox.Unknown, "activity_unknown, hung_io"},
		"hangs":                  {old(hour), Signals{Logs: quietFor(hour), Trend: trend(0, none, "tcp 1.2.3.4:80")}, sandbox.True, "age, silent, hung_io"},

		// a full processor
		"busy, silent 5m":        {old(hour), Signals{Logs: quietFor(5 * time.Minute), Trend: trend(100, none, "")}, sandbox.False, "shows_life"},
		"busy, silent longer":    {old(hour), Signals{Logs: quietFor(5*time.Minute + 1), Trend: trend(100, none, "")}, sandbox.True, "age, silent, busy_loop"},
		"busy and active":        {activity(sandbox.True), Signals{Logs: quietFor(hour), Trend: trend(100, none, "")}, sandbox.True, "age, silent, busy_loop"},
		"busy and writing":       {old(hour), Signals{Logs: quietFor(0), Trend: trend(100, none, "")}, sandbox.False, "shows_life"},
		"busy and repeating":     {old(hour), Signals{Logs: &LogFindings{Complete: true, Lines: 50, Last: noon(), Repeat: Repeat{"x", 20}}, Trend: trend(100, none, "")}, sandbox.True, "age, repeating, busy_loop"},
		"busy, repeats 19 times": {old(hour), Signals{Logs: &LogFindings{Complete: true, Lines: 50, Last: noon(), Repeat: Repeat{"x", 19}}, Trend: trend(100, none, "")}, sandbox.False, "shows_life"},
		"repeating at rest":      {old(hour), Signals{Logs: &LogFindings{Complete: true, Lines: 50, Last: noon(), Repeat: Repeat{"x", 50}}, Trend: trend(0, none, "")}, sandbox.False, "shows_life"},
		"busy and young":         {old(time.Minute), Signals{Logs: quietFor(hour), Trend: trend(100, none, "")}, sandbox.False, "young"},

		// other states
		"provisioning 5m":        {inState(sandbox.StateProvisioning, 5*time.Minute), Signals{}, sandbox.False, "young"},
		"provisioning over":      {inState(sandbox.StateProvisioning, 5*time.Minute+1), Signals{}, sandbox.True, "provisioning"},
		"provisioning, no age":   {sandbox.Sandbox{State: sandbox.StateProvisioning}, Signals{}, sandbox.Unknown, "age_unknown"},
		"provisioning, seen now": {seen(sandbox.StateProvisioning, time.Second), Signals{}, sandbox.Unknown, "age_unknown"},
		"paused":                 {inState(sandbox.StatePaused, hour), Signals{Logs: quietFor(hour)}, sandbox.False, "not_running"},
		"stopped":                {inState(sandbox.StateStopped, hour), Signals{}, sandbox.False, "not_running"},
		"terminated":             {inState(sandbox.StateTerminated, hour), Signals{}, sandbox.False, "not_running"},
		"failed":                 {inState(sandbox.StateFailed, hour), Signals{}, sandbox.False, "not_running"},
		"terminating":            {inState(sandbox.StateTerminating, hour), Signals{}, sandbox.Unknown, "ending"},
		"terminating 10m":        {ending(10 * time.Minute), Signals{}, sandbox.Unknown, "ending"},
		"terminating over":       {ending(10*time.Minute + 1), Signals{}, sandbox.True, "ending"},
		"terminating, seen 10m":  {seenEnding(10 * time.Minute), Signals{}, sandbox.Unknown, "ending"},
		"terminating, seen over": {seenEnding(10*time.Minute + 1), Signals{}, sandbox.True, "ending"},
		"terminating, in future": {ending(-time.Minute), Signals{}, sandbox.Unknown, "ending"},
		"running, seen ending":   {sandbox.Sandbox{State: sandbox.StateRunning, EndingSeenAt: noon().Add(-hour)}, Signals{}, sandbox.Unknown, "age_unknown"},
		"unknown":                {inState(sandbox.StateUnknown, hour), Signals{Logs: quietFor(hour)}, sandbox.Unknown, "state_unknown"},
		"no state":               {inState("", hour), Signals{Logs: quietFor(hour)}, sandbox.Unknown, "state_unknown"},

		// S2-35 and R29
		"waiting":                    {old(hour), Signals{Logs: quietFor(hour), Waits: sandbox.True}, sandbox.False, "waiting"},
		"finished, silent":           {old(hour), Signals{Logs: quietFor(hour), Finished: sandbox.True}, sandbox.True, "age, silent, finished"},
		"finished, nothing is known": {old(hour), Signals{Looked: true, Finished: sandbox.True}, sandbox.Unknown, "activity_unknown, finished"},
		"finished, a source failed":  {old(hour), Signals{Logs: quietFor(hour), SourceFailed: true, Finished: sandbox.True}, sandbox.Unknown, "activity_unknown, source_failed, finished"},
		"finished, rests":            {old(hour), Signals{Trend: trend(0, none, ""), Finished: sandbox.True}, sandbox.Unknown, "activity_unknown, finished"},
		"finished, at work":          {old(hour), Signals{Logs: quietFor(0), Finished: sandbox.True}, sandbox.False, "shows_life"},
		"finished, young":            {old(time.Minute), Signals{Logs: quietFor(hour), Finished: sandbox.True}, sandbox.False, "young"},
		"not finished":               {old(hour), Signals{Logs: quietFor(hour), Finished: sandbox.False}, sandbox.True, "age, silent"},
		"it has no owner":            {old(hour), Signals{TracksTasks: true, Logs: quietFor(0)}, sandbox.False, "shows_life"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judgeStuck(tc.s, tc.sig, DefaultThresholds(), noon())
			assert.Equal(t, tc.want, got.verdict)
			assert.Equal(t, tc.say, joinReasons(got.reasons))
			assert.Equal(t, got.verdict == sandbox.True, got.verdict == sandbox.True && len(got.evidence) > 0, "stuck needs evidence")
		})
	}
}

func TestAgeOnlyJudgesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	th.AgeOnly = true
	got := judgeStuck(old(time.Hour), Signals{Looked: true}, th, noon())
	assert.Equal(t, sandbox.True, got.verdict)
	assert.Equal(t, sandbox.Unknown, judgeStuck(old(time.Hour), Signals{}, th, noon()).verdict, "a look may show life")
	assert.Equal(t, "age, age_only", joinReasons(got.reasons))
	assert.Equal(t, "age, age_only, finished", joinReasons(judgeStuck(old(time.Hour), Signals{Looked: true, Finished: sandbox.True}, th, noon()).reasons))
	assert.Equal(t, sandbox.False, judgeStuck(with(old(time.Hour), func(s *sandbox.Sandbox) { s.Activity = sandbox.True }), Signals{}, th, noon()).verdict, "life that shows still saves")
	assert.Equal(t, sandbox.Unknown, judgeStuck(sandbox.Sandbox{State: sandbox.StateRunning}, Signals{}, th, noon()).verdict)
}

// TestABusyFigureWithoutOperationsDoesNotOverruleAge is the sandbox of source 004: 45 minutes old, a
// reported processor of 95 %, 150,000 operations that do not grow, and no output.
func TestABusyFigureWithoutOperationsDoesNotOverruleAge(t *testing.T) {
	t.Parallel()
	ageOnly := DefaultThresholds()
	ageOnly.AgeOnly = true
	s, stands := old(45*time.Minute), trend(95, 0, "")
	got := Judge(s, Signals{Looked: true, Trend: stands}, ageOnly, noon())
	assert.Equal(t, sandbox.True, got.Stuck, got.Reason)
	assert.Equal(t, "age, age_only", got.Say())
	assert.Equal(t, sandbox.CauseBusyLoop, got.Cause)
	written := func(ago time.Duration) *LogFindings { return &LogFindings{Lines: 1, Last: noon().Add(-ago)} }
	assert.Equal(t, sandbox.True, Judge(s, Signals{Looked: true, Trend: stands, Logs: written(6 * time.Minute)}, ageOnly, noon()).Stuck)
	for name, sig := range map[string]Signals{
		"operations grow":            {Trend: trend(95, 1, "")},
		"operations are not known":   {Trend: trend(95, -1, "")},
		"not at its limit":           {Trend: trend(60, 0, "")},
		"output four minutes ago":    {Trend: stands, Logs: written(4 * time.Minute)},
		"a source that did not tell": {Trend: stands, LookFailed: true},
	} {
		sig.Looked = true
		assert.NotEqual(t, sandbox.True, Judge(s, sig, ageOnly, noon()).Stuck, name)
	}
	assert.Equal(t, sandbox.False, Judge(s, Signals{Looked: true, Trend: stands}, DefaultThresholds(), noon()).Stuck, "where the profile does not say so, it works")
	assert.Equal(t, sandbox.False, Judge(old(9*time.Minute), Signals{Looked: true, Trend: stands}, ageOnly, noon()).Stuck, "young")
}

func TestAHealthyLongRunLives(t *testing.T) {
	t.Parallel()
	s := old(1397 * time.Second) // S2-26
	sig := Signals{Logs: quietFor(25 * time.Second), Trend: trend(3, -1, "")}
	assert.Equal(t, sandbox.False, judgeStuck(s, sig, DefaultThresholds(), noon()).verdict)
	assert.Equal(t, sandbox.False, judgeStuck(s, Signals{Logs: quietFor(25 * time.Second)}, DefaultThresholds(), noon()).verdict)
}

func TestStuckFollowsScaledTime(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds().Scaled(0.01)
	s := old(7 * time.Second)
	sig := Signals{Logs: quietFor(700 * time.Millisecond)}
	assert.Equal(t, sandbox.True, judgeStuck(s, sig, th, noon()).verdict)
	assert.Equal(t, sandbox.False, judgeStuck(s, sig, DefaultThresholds(), noon()).verdict)
}

// TestFinishedChangesNoVerdict: a record that the work is done is reported and changes no
// verdict.
func TestFinishedChangesNoVerdict(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	ageOnly := limits
	ageOnly.AgeOnly = true
	said := 0
	for name, sc := range scenes() {
		for _, th := range []Thresholds{limits, ageOnly} {
			for _, failed := range []bool{false, true} {
				sig := sc.sig
				sig.Looked, sig.LookFailed = true, failed
				without := Judge(sc.s, sig, th, noon())
				sig.Finished, sig.FinishedBy = sandbox.True, sandbox.Evidence{What: "task", Value: "completed", Source: "t-1"}
				with := Judge(sc.s, sig, th, noon())
				assert.Equal(t, without.Stuck, with.Stuck, name)
				assert.Equal(t, without.Activity, with.Activity, name)
				assert.Equal(t, without.NeedsLook(), with.NeedsLook(), name)
				if slices.Contains(with.Reasons, ReasonFinished) {
					said++
					assert.Contains(t, with.Evidence, sig.FinishedBy, name)
				}
			}
		}
	}
	assert.Greater(t, said, 10)
}
