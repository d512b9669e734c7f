package task

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

// TestWhatACreateHasMade: only what proves it is believed to have made nothing; all
// else is looked for.
func TestWhatACreateHasMade(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "HTTP 429").At("prod", "create")
	assert.False(t, definite(down))
	assert.True(t, definite(providers.NothingMade(down)))
	assert.True(t, definite(fault.Placed(providers.NothingMade(down), "prod", "create")))
	assert.Equal(t, down.Error(), providers.NothingMade(down).Error(), "not a word more")
	assert.True(t, definite(fault.New(fault.KindUsage, "no such template")))
	assert.False(t, definite(fault.New(fault.KindUnknown, "?")))
}
