package launch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops"
)

// silent is an observer that nobody watches.
type silent struct{}

func (silent) Note(string)                    {}
func (silent) Warn(string)                    {}
func (silent) Redact(text string) string      { return text }
func (s silent) Progress(string) ops.Progress { return s }
func (silent) Update(string)                  {}
func (silent) Done()                          {}
func (silent) Item(any)                       {}

// TestWhatAPoolLeavesDecidesTheExit of a batch in which all jobs have completed.
func TestWhatAPoolLeavesDecidesTheExit(t *testing.T) {
	t.Parallel()
	outcomes := make(chan BatchOutcome, 1)
	outcomes <- BatchOutcome{}
	close(outcomes)
	left := errors.New("made ahead, not used, and not seen to be gone")
	b := &batch{watch: silent{}, left: left, req: BatchRequest{Jobs: []BatchJob{{}}}}
	result := b.collectOutcomes(t.Context(), outcomes)
	assert.Equal(t, left, result.Verdict)
	assert.Equal(t, 1, result.Tally.Completed)
}
