package launch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/testkit/opstest"
)

// TestWhatAPoolLeavesDecidesTheExit of a batch in which all jobs have completed.
func TestWhatAPoolLeavesDecidesTheExit(t *testing.T) {
	t.Parallel()
	outcomes := make(chan BatchOutcome, 1)
	outcomes <- BatchOutcome{}
	close(outcomes)
	left := errors.New("made ahead, not used, and not seen to be gone")
	b := &batch{watch: &opstest.Recorder{}, left: left, req: BatchRequest{Jobs: []BatchJob{{}}}}
	result := b.collectOutcomes(t.Context(), outcomes)
	assert.Equal(t, left, result.Verdict)
	assert.Equal(t, 1, result.Tally.Completed)
}
