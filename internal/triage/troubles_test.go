package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestReportedTroublesCondemnNothing: they are named, also by the record alone, and the verdict is what it would be
// without them.
func TestReportedTroublesCondemnNothing(t *testing.T) {
	t.Parallel()
	restarts := sandbox.Trouble{ID: "restarts", Say: "it restarts", Cause: sandbox.CauseOOM, Confidence: sandbox.Probable}
	for name, sig := range map[string]Signals{
		"not looked at": {}, "at work": {Logs: quietFor(time.Second)}, "silent": {Logs: quietFor(time.Hour)}, "nothing is known": {Looked: true},
	} {
		plain := old(time.Hour)
		troubled := plain
		troubled.Troubles = []sandbox.Trouble{restarts}
		want, got := Judge(plain, sig, DefaultThresholds(), noon()), Judge(troubled, sig, DefaultThresholds(), noon())
		assert.Equal(t, want.Stuck, got.Stuck, name)
		assert.Equal(t, want.Activity, got.Activity, name)
		assert.Equal(t, want.Reasons, got.Reasons, name)
		assert.Equal(t, "it restarts", got.Findings[0].Title, name)
		assert.Equal(t, sandbox.CauseOOM, got.Cause, name)
		assert.Equal(t, got.Stuck != sandbox.True, got.Suspected(), name)
	}
}
