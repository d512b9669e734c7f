package commands

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/drill"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func TestDrillVerdictWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		given          drill.Case
		cause, verdict string
	}{
		"right":          {drill.Case{Cause: sandbox.CauseOOM, Confidence: sandbox.Certain, OK: true}, "oom", "right"},
		"nothing wrong":  {drill.Case{Confidence: sandbox.Certain, OK: true}, "none", "right"},
		"wrong":          {drill.Case{Cause: sandbox.CauseLeak, Confidence: sandbox.Certain, Why: "expected oom"}, "leak", "WRONG: expected oom"},
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

func drillPage(t *testing.T, r drill.Report) string {
	t.Helper()
	var out bytes.Buffer
	p := output.New(process.Process{
		Args: []string{"sbx"}, Now: atNoon, Stdout: process.Stream{Writer: &out}, Stderr: process.Stream{Writer: &out},
	}, output.Options{})
	require.NoError(t, p.Show(output.Document{Schema: drillSchema, Fields: output.FieldsOf(views.DrillKeysOf(r)), Human: func(s *output.Sheet) { views.DrillPage(s, r) }}))
	return out.String()
}
