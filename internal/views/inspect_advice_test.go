package views_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func TestNextCommand(t *testing.T) {
	t.Parallel()
	probable := []triage.Finding{{Confidence: sandbox.Probable}}
	hint := []triage.Finding{{Confidence: sandbox.Hint}}
	orphan := []triage.Finding{{Cause: sandbox.CauseOrphan, Confidence: sandbox.Hint}}
	wide := []triage.Finding{{Cause: sandbox.CauseUnknown, Confidence: sandbox.Probable, Wide: true}}
	oom := &sandbox.Exit{Cause: sandbox.CauseOOM}
	for name, tc := range map[string]struct {
		state      sandbox.State
		stuck      sandbox.Verdict
		suspicions []triage.Finding
		exit       *sandbox.Exit
		want       string // first words, the best first
	}{
		"works":               {sandbox.StateRunning, sandbox.False, nil, nil, "logs prod/x -f"},
		"stuck":               {sandbox.StateRunning, sandbox.True, nil, nil, "terminate prod/x; logs prod/x --tail 100"},
		"stuck and suspected": {sandbox.StateRunning, sandbox.True, probable, nil, "terminate prod/x; logs prod/x --tail 100"},
		"suspected":           {sandbox.StateRunning, sandbox.False, probable, nil, "top prod/x --samples 10; logs prod/x --tail 100; terminate prod/x"},
		"a hint ends nothing": {sandbox.StateRunning, sandbox.False, hint, nil, "top prod/x --samples 10; logs prod/x --tail 100"},
		"nobody owns it":      {sandbox.StateRunning, sandbox.False, orphan, nil, "logs prod/x -f"},
		"its profile ails":    {sandbox.StateRunning, sandbox.False, wide, nil, "logs prod/x -f"},
		"its profile, too":    {sandbox.StateRunning, sandbox.False, append(wide, hint...), nil, "top prod/x --samples 10; logs prod/x --tail 100"},
		"nobody knows":        {sandbox.StateRunning, sandbox.Unknown, nil, nil, "top prod/x --samples 10; logs prod/x --tail 100; terminate prod/x"},
		"starts":              {sandbox.StateProvisioning, sandbox.False, nil, nil, "wait prod/x --for running"},
		"starts for ever":     {sandbox.StateProvisioning, sandbox.True, nil, nil, "terminate prod/x; doctor --provider prod"},
		"ends":                {sandbox.StateTerminating, sandbox.Unknown, nil, nil, "wait prod/x --for ended"},
		"ended":               {sandbox.StateTerminated, sandbox.False, nil, &sandbox.Exit{}, "logs prod/x --tail 100"},
		"no memory":           {sandbox.StateFailed, sandbox.False, probable, oom, "logs prod/x --tail 100; create --memory 128M -- COMMAND"},
		"paused":              {sandbox.StatePaused, sandbox.False, nil, nil, "logs prod/x --tail 100; terminate prod/x --delete"},
		"unknown":             {sandbox.StateUnknown, sandbox.Unknown, nil, nil, "doctor --provider prod; logs prod/x --tail 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := views.Inspection{}
			i.Verdict.Findings = tc.suspicions
			i.Sandbox = sandbox.Sandbox{Provider: "prod", ID: "x", State: tc.state, Exit: tc.exit, Limits: sandbox.Limits{MemoryBytes: new(int64(64 * sandbox.MiB))}}
			i.Verdict.Stuck = tc.stuck
			commands := func() string {
				var got []string
				for _, step := range i.Next() {
					got = append(got, step.Command)
					assert.NotEmpty(t, step.Why)
				}
				return strings.Join(got, "; ")
			}
			assert.NotContains(t, commands(), "--tail", "the page has all the output that there is")
			i.Seen.Logs.Got = make([]sandbox.LogLine, 10)
			assert.Equal(t, tc.want, commands())
		})
	}
}

func TestAHigherLimitNeedsACauseAndALimit(t *testing.T) {
	t.Parallel()
	for cause, more := range map[sandbox.Cause]bool{
		sandbox.CauseOOM: true, sandbox.CauseOOMChild: true, sandbox.CauseMemoryWatchdog: true,
		sandbox.CauseRuntimeHeap: false, sandbox.CauseUnknown: false, sandbox.CauseTimeout: false, sandbox.CauseNone: false,
	} {
		i := views.Inspection{}
		i.Exit = &sandbox.Exit{Cause: cause}
		assert.Empty(t, i.HigherLimit(), "no limit is known")
		i.Limits.MemoryBytes = new(int64(512 * sandbox.MiB))
		assert.Equal(t, more, len(i.HigherLimit()) == 1, cause)
	}
	i := views.Inspection{}
	i.Exit, i.Limits.PIDs = &sandbox.Exit{Cause: sandbox.CauseProcessLimit}, new(int64(30))
	require.Len(t, i.HigherLimit(), 1)
	assert.Equal(t, "create --pids 60 -- COMMAND", i.HigherLimit()[0].Command)
}

func TestBecause(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "it is old", views.ClaimWithEvidence("it is old", nil))
	assert.Equal(t, "it is old: age 1200s (created_at), no source", views.ClaimWithEvidence("it is old", []sandbox.Evidence{
		{What: "age", Value: "1200s", Source: "created_at"}, {What: "no source"},
	}))
}

func TestTonesFollowTheWords(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []output.Tone{output.Bad, output.Warn, output.Plain},
		[]output.Tone{views.SeverityTone(triage.Critical), views.SeverityTone(triage.Warning), views.SeverityTone(triage.Info)})
	assert.Equal(t, []output.Tone{output.Bad, output.Bad, output.Warn, output.Plain}, []output.Tone{
		views.ConfidenceTone(sandbox.Certain), views.ConfidenceTone(sandbox.Probable), views.ConfidenceTone(sandbox.Hint), views.ConfidenceTone(sandbox.ConfidenceUnknown),
	})
	assert.Equal(t, []output.Tone{output.Bad, output.Warn, output.Plain},
		[]output.Tone{views.StuckTone(sandbox.True), views.StuckTone(sandbox.Unknown), views.StuckTone(sandbox.False)})
	for state, want := range map[sandbox.State]output.Tone{sandbox.StateRunning: output.Bad, sandbox.StateFailed: output.Plain} {
		i := views.Inspection{}
		i.State, i.Seen.Health.Got.Verdict = state, sandbox.False
		assert.Equal(t, want, i.HealthTone(), "what has ended owes no answer")
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for at, want := range map[time.Time]string{
		{}:                                   "-",
		noon().Add(-time.Minute):             "11:59:00",
		noon().Add(-24 * time.Hour):          "2026-11-19T12:00:00Z",
		noon().Add(time.Minute):              "2026-11-20T12:01:00Z",
		noon().Add(-24*time.Hour + 1):        "12:00:00",
		noon().In(time.FixedZone("x", 3600)): "12:00:00",
	} {
		assert.Equal(t, want, views.ClockTime(at, noon()))
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"prod/i-77_a.b": "prod/i-77_a.b", "": "''", "a b": "'a b'", "x;rm -rf /": "'x;rm -rf /'",
		"it's": `'it'\''s'`, "$(id)": "'$(id)'", "日本": "'日本'",
	} {
		assert.Equal(t, want, views.ShellWord(word))
	}
}

// FuzzShellWord reads back what a shell would: quotes pair up, and nothing
// outside of them has a meaning.
func FuzzShellWord(f *testing.F) {
	for _, word := range []string{"prod/x", "", "a'b", "''", `\'`, "x;id", "a\nb", "0=", "=ls"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		var back strings.Builder
		quoted, escaped := false, false
		for i, r := range []byte(views.ShellWord(word)) {
			switch {
			case escaped:
				back.WriteByte(r)
				escaped = false
			case r == '\'':
				quoted = !quoted
			case !quoted && r == '\\':
				escaped = true
			default:
				inside := r == '=' && i > 0 // only zsh gives it a meaning, at the beginning of a word
				assert.True(t, quoted || inside || !strings.ContainsRune(" \t\n;&|<>$`\"*?[]#~=(){}!", rune(r)), "bare %q", r)
				back.WriteByte(r)
			}
		}
		assert.False(t, quoted || escaped)
		assert.Equal(t, word, back.String())
	})
}

func TestEnforcementIsLabelledHonestly(t *testing.T) {
	t.Parallel()
	for e, want := range map[sandbox.Enforcement]string{
		"": "not reported", sandbox.EnforcementNone: "is not enforced", sandbox.EnforcementWatch: "watchdog (soft", sandbox.EnforcementCgroup1: "cgroup1 (hard",
		sandbox.EnforcementHybrid: "hybrid (hard", sandbox.EnforcementScope: "systemd-scope (",
	} {
		assert.Contains(t, views.EnforcementText(e), want)
	}
}
