package ops

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestOnceSaysAnInterruptionOnce(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "503")
	cut := func() []error {
		return []error{down, context.Canceled, fault.New(fault.KindTimeout, "late"), fault.New(fault.KindTerminated, "SIGTERM")}
	}
	assert.Equal(t, cut(), CauseOnce(t.Context(), cut()), "nothing ended: every error stands for itself")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.KindCanceled, "interrupted"))
	got := CauseOnce(ctx, cut())
	require.Len(t, got, 2)
	assert.Equal(t, down, got[0])
	require.EqualError(t, got[1], "interrupted")
}
