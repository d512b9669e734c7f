package commands

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/drill"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/picture"
	"sbx/internal/views"
)

func TestDrillVerdictWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given          drill.Case
		cause, verdict string
	}{
		"right":          {drill.Case{Cause: sandbox.CauseOOM, Confidence: sandbox.Certain, OK: true}, "out of memory", "right"},
		"nothing wrong":  {drill.Case{Confidence: sandbox.Certain, OK: true}, "none", "right"},
		"wrong":          {drill.Case{Cause: sandbox.CauseLeak, Confidence: sandbox.Certain, Why: "expected oom"}, "memory leak", "WRONG: expected oom"},
		"interrupted":    {drill.Case{Outcome: sandbox.OutcomeNotAttempted}, "", "not judged"},
		"lost meanwhile": {drill.Case{Why: "it did not survive"}, "", "WRONG: it did not survive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.cause, views.DrillCauseWord(tc.given))
			assert.Equal(t, tc.verdict, views.DrillVerdictWord(tc.given))
		})
	}
}

func TestDrillSaysHowToRemoveWhatItKeeps(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"kept": true, "ended": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := drillPage(t, drill.Report{Kept: kept, Enforcement: sandbox.EnforcementWatch})
			if kept {
				assert.Contains(t, page, "sbx drill --clean")
			} else {
				assert.NotContains(t, page, "kept")
			}
			assert.Contains(t, page, "watchdog")
		})
	}
}

// TestDrillPageIsOneLineForEachCase: what was seen, by which fact, what was done, and the proof.
func TestDrillPageIsOneLineForEachCase(t *testing.T) {
	t.Parallel()
	fact := func(what, value string) sandbox.Evidence {
		return sandbox.Evidence{What: what, Value: value, Source: "log"}
	}
	page := drillPage(t, drill.Report{Enforcement: sandbox.EnforcementCgroup2, Cases: []drill.Case{
		{
			Name: "hung", Cause: sandbox.CauseHungIO, Confidence: sandbox.Probable, OK: true, Outcome: sandbox.OutcomeVerified, Fact: "waits on",
			Evidence: []sandbox.Evidence{fact("cpu", "0%"), fact("waits on", "tcp 127.0.0.1:1"), fact("tree", "cgroup empty, no process of the tree is left")},
		},
		{
			Name: "orphan", About: "has no known task", Cause: sandbox.CauseOrphan, Confidence: sandbox.Hint, OK: true, Outcome: sandbox.OutcomeVerified,
			Evidence: []sandbox.Evidence{fact("tree", "no process of the tree is left")},
		},
		{
			Name: "silent", About: "writes nothing", Cause: sandbox.CauseNone, Confidence: sandbox.Probable, Outcome: sandbox.OutcomeStuck, Fact: "silence", Why: "expected silent",
			Evidence: []sandbox.Evidence{fact("cpu", "9%")},
		},
		{
			Name: "healthy", Confidence: sandbox.Probable, OK: true, Healthy: true, Outcome: sandbox.OutcomeSkipped, Fact: "silence",
			Evidence: []sandbox.Evidence{fact("silence", "0.1s"), fact("survived", "running")},
		},
	}})
	for _, line := range []string{
		"Staged: 4 sandboxes of real processes; the kernel holds the limits (cgroup2)",
		"CASE     SBX SAW               WHY                SBX DID     PROOF",
		"hung     waits on the network  tcp 127.0.0.1:1    terminated  cgroup empty",
		"orphan   no owner              has no known task  terminated  no process of the tree is left",
		"silent   none                  cpu 9%             stuck       -",
		"healthy  none                  silence 0.1s       left alone  still running",
		"silent: WRONG: expected silent",
		"cases        3 of 4 are right; the healthy one survived",
		"left behind  nothing",
	} {
		assert.Contains(t, page, line)
	}
}

// TestPictureOfTheDrill: the documentation shows the page as it is; `make pictures` draws it.
func TestPictureOfTheDrill(t *testing.T) {
	t.Parallel()
	tree := sandbox.Evidence{What: "tree", Value: "cgroup empty, no process of the tree is left"}
	staged := func(name string, cause sandbox.Cause, what, value string) drill.Case {
		return drill.Case{
			Name: name, Cause: cause, Confidence: sandbox.Probable, OK: true, Outcome: sandbox.OutcomeVerified, Fact: what,
			Evidence: []sandbox.Evidence{{What: what, Value: value}, tree},
		}
	}
	leak := staged("leak", sandbox.CauseOOM, "oom_kill", "1")
	leak.Outcome = sandbox.OutcomeAlreadyGone
	healthy := staged("healthy", sandbox.CauseNone, "silence", "0.01s")
	healthy.Outcome, healthy.Healthy, healthy.Evidence[1] = sandbox.OutcomeSkipped, true, sandbox.Evidence{What: "survived", Value: "running"}
	orphan := drill.Case{Name: "orphan", About: "has no known task", Cause: sandbox.CauseOrphan, Confidence: sandbox.Hint, OK: true, Outcome: sandbox.OutcomeVerified, Evidence: []sandbox.Evidence{tree}}
	text := drillPage(t, drill.Report{
		Enforcement: sandbox.EnforcementHybrid, Runbook: &engine.Run{ID: "b-20261127T194424945-c257zm", Runbook: "sandbox-stuck", State: engine.RunDone},
		Cases: []drill.Case{
			staged("busy", sandbox.CauseBusyLoop, "cpu", "102.14%"), staged("hung", sandbox.CauseHungIO, "waits on", "tcp 127.0.0.1:34927"),
			leak, staged("silent", sandbox.CauseSilent, "silence", "7.15s"), orphan, healthy,
		},
	}, "CLICOLOR_FORCE=1")
	lines := append([]string{"$ sbx drill"}, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
	picture.Hold(t, "drill-dark", lines, 80, picture.Dark(), *update)
	picture.Hold(t, "drill-light", lines, 80, picture.Light(), *update)
}

func drillPage(t *testing.T, r drill.Report, environ ...string) string {
	t.Helper()
	var out bytes.Buffer
	p := output.New(process.Process{
		Args: []string{"sbx"}, Now: atNoon, Environ: environ, Stdout: process.Stream{Writer: &out}, Stderr: process.Stream{Writer: &out},
	}, output.Options{})
	require.NoError(t, p.Show(output.Document{Schema: drillSchema, Fields: output.FieldsOf(views.DrillKeysOf(r)), Human: func(s *output.Sheet) { views.DrillPage(s, r, false) }}))
	return out.String()
}
