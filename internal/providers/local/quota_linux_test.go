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

func TestMemoryThatIsNotTold(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n": true,
		"MemTotal: 2048 kB\n":                  false,
		"":                                     false,
		"MemTotal: x kB\nMemAvailable: 1 kB\n": false,
		"MemTotal: 1 kB\nMemAvailable: 2 kB\n": false,
		"MemTotal:\nMemAvailable:\n":           false,
	} {
		total, available, got := memoryOf([]byte(text))
		assert.Equal(t, ok, got, "%q", text)
		if ok {
			assert.InDelta(t, 2, total, 0)
			assert.InDelta(t, 1, available, 0)
		}
	}
}
