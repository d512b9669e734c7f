package local

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuotaIsTheMemoryOfThisMachine(t *testing.T) {
	t.Parallel()
	c := &Client{name: "local"}
	got, err := c.Quota(t.Context())
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Positive(t, *got[0].Limit)
	assert.Positive(t, *got[0].Used)
	assert.Less(t, *got[0].Used, *got[0].Limit)
}
