package runbook_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/runbook"
	"sbx/internal/triage"
	"sbx/runbooks"
)

// TestEveryRunbookIsNumberedAlike: whole steps count from 1, a check is inside the step before it, what is done is one
// step, the verification the last. No two parts have one number.
func TestEveryRunbookIsNumberedAlike(t *testing.T) {
	t.Parallel()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	for _, book := range catalog.Books {
		outline, seen := book.Outline(), map[string]bool{}
		for i, h := range outline.Steps {
			assert.Equal(t, strconv.Itoa(i+1)+" "+h.Word, h.Whole(), book.Metadata.ID)
		}
		for _, s := range book.Spec.Steps {
			at := outline.Of(s.ID)
			assert.Equal(t, s.Kind() != runbook.KindCheck, at.IsWhole(), "%s %s", book.Metadata.ID, s.ID)
			assert.False(t, seen[at.Number], "%s: %s twice", book.Metadata.ID, at.Number)
			seen[at.Number] = true
		}
		for _, c := range book.Spec.Causes {
			branch := outline.OfCause(c.PossibleCause)
			assert.Equal(t, "end", branch.Word)
			for i, s := range c.Steps {
				assert.Equal(t, branch.Number+strconv.Itoa(i+1), outline.Of(s.ID).Number)
			}
		}
		last := outline.Steps[len(outline.Steps)-1]
		assert.Equal(t, "verify", last.Word)
		assert.Equal(t, last.Number+"a", outline.Of(book.Spec.Verification[0].ID).Number)
	}
}

// TestTheStuckRunbookHasSevenSteps, those of every other surface.
func TestTheStuckRunbookHasSevenSteps(t *testing.T) {
	t.Parallel()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	book, err := catalog.Find("sandbox-stuck")
	require.NoError(t, err)
	outline := book.Outline()
	var got []string
	for _, h := range outline.Steps {
		got = append(got, h.Whole())
	}
	var want []string
	for _, s := range triage.StuckSteps() {
		want = append(want, s.Label())
	}
	assert.Equal(t, want, got)
	for id, number := range map[runbook.Word]string{
		"count": "1", "leak": "1a", "timeouts": "1b", "stuck": "2", "resources": "4", "end-loop": "6a1", "limit-loop": "6a2", "end-hang": "6b1", "end-stuck": "6f1", "verify-quotas": "7e",
	} {
		assert.Equal(t, number, outline.Of(id).Number, id)
	}
}
