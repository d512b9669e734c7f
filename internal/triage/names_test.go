package triage

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestEachFindingHasOneName: what ls calls a cause, a diagnosis calls it, a runbook, and the sentence of the verdict.
func TestEachFindingHasOneName(t *testing.T) {
	t.Parallel()
	for _, rule := range causeRules() {
		assert.Equal(t, rule.title, PossibleCauseLabel(rule.id))
		if !rule.wide && rule.cause != sandbox.CauseGhost { // those are of a profile
			assert.Equal(t, rule.cause.Label(), rule.title, rule.id)
		}
	}
	for _, possible := range PossibleCauses() {
		assert.NotRegexp(t, `[R(]\d|cause \d`, possible.Title)
		assert.Contains(t, possible.Title, PossibleCauseLabel(possible.ID))
	}
	for _, c := range sandbox.Causes() {
		if c != sandbox.CauseUnknown {
			assert.Contains(t, causeWords(c), c.Label(), c)
		}
	}
}
