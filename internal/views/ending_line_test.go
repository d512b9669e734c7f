package views_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
	"sbx/internal/views"
)

// TestALineOfAnEnd: what has to be known of an end that holds is beside it; why one failed is in its error.
func TestALineOfAnEnd(t *testing.T) {
	t.Parallel()
	ref := sandbox.Ref{Provider: "prod", ID: "a1"}
	for want, e := range map[string]sandbox.Ending{
		"verified prod/a1 in 2s":                     {Outcome: sandbox.OutcomeVerified, Duration: 2 * time.Second},
		"verified prod/a1 in 2s: it runs again":      {Outcome: sandbox.OutcomeVerified, Duration: 2 * time.Second, Reason: "it runs again"},
		"already_gone prod/a1: it ended before that": {Outcome: sandbox.OutcomeAlreadyGone, Reason: "it ended before that"},
		"failed prod/a1":                             {Outcome: sandbox.OutcomeFailed, Reason: "HTTP 500"},
	} {
		e.Ref = ref
		assert.Equal(t, want, views.EndingLine(e))
	}
}
