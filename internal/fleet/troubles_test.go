package fleet_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// troubled is a provider that reports more than its listing.
type troubled struct {
	*fake.Provider

	err error
}

func (p troubled) Troubles(context.Context, string) ([]sandbox.Trouble, error) {
	return []sandbox.Trouble{{ID: "restarts", Say: "it restarts", Cause: sandbox.CauseRestarts, Confidence: sandbox.Probable}}, p.err
}

// TestALookSeesTroubles that the listing does not report; where they cannot be read the look is none the worse.
func TestALookSeesTroubles(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"read": nil, "unread": assert.AnError} {
		p := troubled{fake.New(fake.Options{}), err}
		made, failed := p.Create(t.Context(), sandbox.Spec{Command: []string{"sleep", "600"}})
		require.NoError(t, failed)
		f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Sample: 1})
		seen := f.ObserveLife(t.Context(), made)
		require.NoError(t, seen.FailedErr(), name)
		found := seen.Judge(triage.DefaultThresholds(), made.CreatedAt).Findings
		if err == nil {
			require.NotEmpty(t, found, name)
			assert.Equal(t, "it restarts", found[0].Title)
			continue
		}
		assert.Empty(t, seen.Sandbox.Troubles, name)
	}
}
