package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

func TestFormatCounts(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "5 leak, 3 busy, 3 oom", sandbox.FormatCounts(map[string]int{"oom": 3, "leak": 5, "busy": 3, "none": 0}))
	assert.Empty(t, sandbox.FormatCounts(map[sandbox.Cause]int{}))
}

func TestFormatFirst(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	assert.Equal(t, "a, b, c", sandbox.FormatFirst(names, 3))
	assert.Equal(t, "a and 2 more", sandbox.FormatFirst(names, 1))
	assert.Empty(t, sandbox.FormatFirst(nil, 3))
}
