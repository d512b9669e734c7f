package triage

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// TestEveryLiteralIsFound holds for each text of each pattern: it is found in
// lower case, in capitals and between other words, and not inside a longer word.
func TestEveryLiteralIsFound(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	for i, p := range Patterns() {
		for _, l := range p.literals {
			for _, line := range []string{l, strings.ToUpper(l), "12:00 [x] " + l + ".", "\x1b[0;32m" + l + "\x1b[0m", "\x1b[m" + l} {
				got := m.scanLine(line).pattern
				assert.GreaterOrEqual(t, got, 0, "%q", line)
				assert.LessOrEqual(t, got, i, "%q belongs to %s or to one before it", line, p.ID)
			}
			if wordByte(l[len(l)-1]) {
				assert.NotEqual(t, i, m.scanLine(l+"z").pattern, "%q", l+"z")
				assert.NotEqual(t, i, m.scanLine(l+"Z").pattern)
			}
			if wordByte(l[0]) {
				for _, before := range []string{"a", "A", "z", "Z", "0", "9", "_", "m", "[0m", "1m"} {
					assert.NotEqual(t, i, m.scanLine(before+l).pattern, "%q", before+l)
				}
			}
		}
	}
}

func TestTheFirstPatternCountsToo(t *testing.T) {
	t.Parallel()
	w := NewLogWatch(NewMatcher())
	p, found := w.Add(sandbox.LogLine{Text: "signal: killed"})
	assert.True(t, found)
	assert.Equal(t, Patterns()[0].ID, p.ID)
	assert.True(t, hasPattern(w.Findings(), p.ID))
}

func TestCallEdges(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	for line, want := range map[string]string{
		"calling https://@host.example/":       "host.example",
		"calling @host":                        "host",
		"calling first then request to second": "first",
		"calling https://host.exämple/":        "host.ex",
		"GET https://h/ 99":                    "h",
		"GET https://h/ 600":                   "h",
		"GET https://h/ 1000":                  "h",
		"calling\thost":                        "host",
	} {
		target, calls := externalCall(line, m.scanLine(line))
		assert.True(t, calls, "%q", line)
		assert.Equal(t, want, target, "%q", line)
	}
	for _, line := range []string{"GET https://h/ 100", "GET https://h/ 599", "GET https://h/ (204)"} {
		_, calls := externalCall(line, m.scanLine(line))
		assert.False(t, calls, "%q", line)
	}
}

func TestSamplesAreCutAtTheirLength(t *testing.T) {
	t.Parallel()
	exact := strings.Repeat("x", sampleBytes)
	assert.Equal(t, exact, shortenLine(exact))
	assert.Equal(t, exact+"...", shortenLine(exact+"y"))
	assert.Equal(t, strings.Repeat("x", sampleBytes-1)+"...", shortenLine(strings.Repeat("x", sampleBytes-1)+"ü"), "no half character")
}

func TestExitEdges(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"-255", "599", "128"} {
		got := ParseExit(raw)
		require.NotNil(t, got.Code, raw)
		assert.Empty(t, got.Signal, raw)
	}
	seen := map[int]bool{}
	for _, s := range linuxSignals() {
		assert.False(t, seen[s.number])
		seen[s.number] = true
		for _, raw := range []string{s.name, strings.ToLower(s.name), "signal: " + s.word, "signal: " + s.name} {
			got := ParseExit(raw)
			require.NotNil(t, got.Code, raw)
			assert.Equal(t, 128+s.number, *got.Code, raw)
			assert.Equal(t, s.name, got.Signal, raw)
			assert.Equal(t, sandbox.True, got.Death, raw)
		}
	}
}

func TestClassifyWithoutAMatcher(t *testing.T) {
	t.Parallel()
	got := ClassifyExit(nil, ExitFacts{Raw: "1", Lines: []string{"MemoryError"}})
	assert.Equal(t, sandbox.ClassAgentError, got.Class)
	assert.Equal(t, sandbox.CauseUnknown, got.Cause)
}

// TestAWaitStatusBeatsASpelling: a wait status decides how the program died; without one the
// spelling does.
func TestAWaitStatusBeatsASpelling(t *testing.T) {
	t.Parallel()
	kills := new(int64(1))
	for died, want := range map[sandbox.Verdict]sandbox.Cause{
		sandbox.True: sandbox.CauseOOM, sandbox.Unknown: sandbox.CauseOOM, "": sandbox.CauseOOM, sandbox.False: sandbox.CauseOOMChild,
	} {
		got := ClassifyExit(nil, ExitFacts{Raw: "signal: killed", Died: died, OOMKills: kills})
		assert.Equal(t, want, got.Cause, "%q", died)
	}
}

func TestTheHintOfALastSample(t *testing.T) {
	t.Parallel()
	at := noon()
	for name, tc := range map[string]struct {
		share int64
		ago   time.Duration
		want  sandbox.Cause
	}{
		"exactly 90 percent, at the very end": {90, 0, sandbox.CauseOOM},
		"89 percent":                          {89, 0, sandbox.CauseUnknown},
		"two seconds before":                  {90, 2 * time.Second, sandbox.CauseOOM},
		"longer before":                       {90, 2*time.Second + 1, sandbox.CauseUnknown},
	} {
		got := ClassifyExit(nil, ExitFacts{Raw: "-9", At: at, LastBytes: &tc.share, LastAt: at.Add(-tc.ago), LimitBytes: new(int64(100))})
		assert.Equal(t, tc.want, got.Cause, name)
		assert.Equal(t, sandbox.ClassKilledUnknown, got.Class, "a hint does not change the class")
	}
}

func TestHistoryWithoutTimesIsNoHistory(t *testing.T) {
	t.Parallel()
	f := FleetSignals{History: []ActiveCount{{Active: 99}, {At: noon().Add(time.Hour), Active: 99}}}
	assert.Empty(t, f.Past(noon()))
}

func TestAnEndedSandboxIsNotMissing(t *testing.T) {
	t.Parallel()
	m := about(Signals{Exists: sandbox.False})
	assert.Equal(t, sandbox.True, m.missingAtProvider().Verdict)
	m.s.State = sandbox.StateTerminated
	assert.Equal(t, sandbox.Unknown, m.missingAtProvider().Verdict)
}

// TestTheSessionOfSource000 reads the log of an agent that was killed
// (S0-2, S0-3): the kill is seen, and no cause is made up.
func TestTheSessionOfSource000(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	texts := []string{
		"Installed 14 packages in 2.31s",
		"Agent starting...",
		"Session: 5f0c",
		"assistant: I will look at the code",
		"assistant: now the tests",
		"Fatal error in message reader: Command failed with exit code -9 (exit code: -9)",
	}
	found := ReadLines(m, lines(texts...))
	assert.True(t, hasPattern(found, "sigkill"))
	assert.Len(t, found.Hits, 1)
	assert.Equal(t, 1, found.Errors)
	exit := ClassifyExit(m, ExitFacts{Raw: "-9", Lines: texts})
	assert.Equal(t, sandbox.ClassKilledUnknown, exit.Class)
	assert.Equal(t, sandbox.CauseUnknown, exit.Cause)
	other := ClassifyExit(m, ExitFacts{Raw: "1", Lines: []string{"API Error: 529 overloaded_error"}})
	assert.Equal(t, sandbox.ClassAgentError, other.Class, "S0-4: an API error with exit 1 is no kill")
}

// TestBothSpellingsOfTheCleanupLog covers R54 and R89.
func TestBothSpellingsOfTheCleanupLog(t *testing.T) {
	t.Parallel()
	m := NewMatcher()
	want := []string{"cleanup_started", "cleanup_found", "cleanup_removed", "cleanup_completed"}
	for _, texts := range [][]string{
		{"Sandbox cleanup started", "Found 2 sandboxes to cleanup", "Cleaned up sandbox_1", "Cleanup completed"},
		{"Starting sandbox cleanup", "Found 1 sandbox to cleanup", "Cleaned up sandbox sandbox_1", "Cleanup completed: 1 sandboxes removed"},
	} {
		var ids []string
		for _, h := range ReadLines(m, lines(texts...)).Hits {
			ids = append(ids, h.Pattern.ID)
		}
		assert.Equal(t, want, ids)
	}
}

// TestThresholdsReachEveryRule holds that no rule keeps a limit of
// its own: with every threshold out of reach, nothing is found.
func TestThresholdsReachEveryRule(t *testing.T) {
	t.Parallel()
	far := DefaultThresholds().Scaled(1e6).With(Thresholds{
		CPUBusy: 1e9, CPUIdle: 1e-9, OperationsHigh: 1e12, MemorySlope: 1e12, MemoryGrowth: 1e12,
		MemoryNear: 2, RepeatLines: 1000, RepeatTimeouts: 1000, ActiveMax: 1 << 40, TimeoutRateHigh: 1, TimeoutRateGood: 1,
	})
	for name, sc := range scenes() {
		if sc.sig.Exists != "" {
			continue // what does not exist is missing at any threshold
		}
		assert.NotEqual(t, sandbox.True, judgeStuck(sc.s, sc.sig, far, noon()).verdict, name)
		for _, id := range []string{"running_long", "over_age", "provisioning_long", "repeated_timeouts", "silent"} {
			assert.NotEqual(t, sandbox.True, pick(t, Flags(sc.s, sc.sig, far, noon()), id).Verdict, "%s %s", name, id)
		}
		for _, f := range rankCauses(sc.s, sc.sig, far, noon()) {
			assert.Contains(t, []string{"exit", "no_owner", "cleanup_not_running", "resource_exhaustion", "external_hang"}, f.ID, name)
		}
	}
	samples := []sandbox.Usage{mem(0, 1), mem(60, 1000), cpu(0, 0), cpu(60, 60)}
	assert.Equal(t, PatternSteady, TrendOf(samples, far).usagePattern(far))
}

// TestNearThresholdsFindEverything is the other side: with limits at the floor
// the same cases are found.
func TestNearThresholdsFindEverything(t *testing.T) {
	t.Parallel()
	near := DefaultThresholds().Scaled(1e-9)
	s := old(time.Second)
	sig := Signals{Logs: quietFor(time.Second), TimeLimitsHit: new(2), Trend: trend(0, 0, "sleep")}
	assert.Equal(t, sandbox.True, judgeStuck(s, sig, near, noon()).verdict)
	for _, id := range []string{"running_long", "over_age", "repeated_timeouts", "silent"} {
		assert.Equal(t, sandbox.True, pick(t, Flags(s, sig, near, noon()), id).Verdict, id)
	}
	cause, confidence := likely(rankCauses(s, sig, near, noon()))
	assert.Equal(t, sandbox.CauseSilent, cause)
	assert.Equal(t, sandbox.Probable, confidence)
}
