package requirement_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/requirement"
)

func TestANameAndItsRequirement(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "R129", requirement.Of("quota_free"))
	assert.Equal(t, "quota_free", requirement.Name("R129"))
	assert.Equal(t, "R1", requirement.Of("sandbox_timeout_high"), "the first of its rows")
	assert.Empty(t, requirement.Name("R9"))
	assert.Empty(t, requirement.Of("R129"))
}
