package task

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestARulingSaysWhatNextDoes compares the documented retries with those of Next.
func TestARulingSaysWhatNextDoes(t *testing.T) {
	t.Parallel()
	for _, r := range Rulings() {
		one := pending()
		one.Spec.MemoryBytes = 64 * sandbox.MiB
		one.Attempts = []Attempt{{N: 1, MemoryMB: 64, Exit: &Exit{Class: r.Class}}}
		next := one.Next(0)
		assert.Equal(t, r.Again != "never", next.Again, r.Class)
		assert.Equal(t, r.Why, next.Why, r.Class)
	}
}

func TestAChildThatRanOutOfMemoryIsNamed(t *testing.T) {
	t.Parallel()
	one := pending()
	one.Attempts = []Attempt{{N: 1, Exit: &Exit{Class: sandbox.ClassKilledUnknown, Cause: sandbox.CauseOOMChild}}}
	assert.Equal(t, Retry{Again: true, Why: "it was killed when a process of it ran out of memory", Delay: one.Next(0).Delay}, one.Next(0))
}
