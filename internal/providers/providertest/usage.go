package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func usageChecks() []Check {
	return []Check{
		{"usage_is_nil_where_unknown", "usage", usageNil},
		{"usage_of_unknown_is_not_found", "usage", usageUnknown},
	}
}

func usageNil(t T, s *Subject) {
	r := ability[providers.UsageReader](t, s)
	id := s.start(t, sandbox.Spec{})
	u, err := r.Usage(s.context(t), id)
	require.NoError(t, err)
	assert.False(t, u.At.IsZero(), "a sample has a time")
	assert.False(t, u.At.After(time.Now().Add(time.Minute)), "a sample from the future: %s", u.At)
	assert.NotEmpty(t, u.Source, "a sample names its source")
	// What runs uses memory and is a process, and a limit of nothing is none.
	for name, n := range map[string]*int64{
		"memory": u.MemoryBytes, "peak": u.MemoryPeakBytes, "limit": u.MemoryLimitBytes, "pids": u.PIDs,
	} {
		assert.True(t, n == nil || *n > 0, "%s: what is not known is nil, not %v", name, n)
	}
	for name, f := range map[string]*float64{"cpu_percent": u.CPUPercent, "cpu_seconds": u.CPUSeconds} {
		assert.True(t, f == nil || *f >= 0, "%s is negative", name)
	}
}

func usageUnknown(t T, s *Subject) {
	r := ability[providers.UsageReader](t, s)
	_, err := r.Usage(s.context(t), unknownID)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "%v", err)
}
