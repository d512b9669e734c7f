package providers_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

func TestWhatCannotBeIsNotTold(t *testing.T) {
	t.Parallel()
	for at, kept := range map[time.Time]bool{
		time.Unix(0, 0): false, time.Unix(1, 0): false, {}: false, time.Date(1989, 12, 31, 0, 0, 0, 0, time.UTC): false,
		time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC): true, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC): true,
	} {
		assert.Equal(t, !kept, providers.ValidTime(at).IsZero(), "%s", at)
	}
	for n, kept := range map[int64]bool{0: true, 1 << 40: true, -1: false, -1 << 53: false, math.MaxInt64: false} {
		assert.Equal(t, kept, providers.ValidBytes(&n) != nil, "%d", n)
	}
	for v, kept := range map[float64]bool{0: true, 400: true, -1: false, 1e300: false, math.Inf(1): false} {
		assert.Equal(t, kept, providers.ValidPercent(&v) != nil, "%f", v)
	}
	assert.Nil(t, providers.ValidBytes(nil))
	assert.Nil(t, providers.ValidPercent(nil))
}

func TestSameRoute(t *testing.T) {
	t.Parallel()
	answer := func(path string) error {
		return fmt.Errorf("look: %w", fault.New(fault.KindNotFound, "%w", &httpx.StatusError{Status: 404, Path: path}))
	}
	assert.True(t, providers.SameRoute(answer("/sandbox/a"), answer("/sandbox/a")))
	assert.False(t, providers.SameRoute(answer("/sandbox/a"), answer("/sandbox/a/resources")))
	assert.False(t, providers.SameRoute(fault.New(fault.KindNotFound, "no"), answer("/sandbox/a")), "it is no answer of an API")
	assert.False(t, providers.SameRoute(nil, nil))
}
