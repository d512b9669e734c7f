package look_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// TestARoundSaysWhatItCouldNotRead: counters that fail cost no row, and a listing that fails is in both the
// round and what is known of the connection.
func TestARoundSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	p := opstest.Prod("stuck001")
	live, err := look.NewLive(t.Context(), opstest.NewSite(t, opstest.OneProfile, p).Env(t))
	require.NoError(t, err)
	r := live.Round(t.Context(), "prod")
	require.NoError(t, r.Err)
	require.NoError(t, r.FiguresErr)
	assert.NotNil(t, r.Figures.Counts.Active)
	assert.False(t, r.Connection.CompleteAt.IsZero())

	p.Break(fake.Fault{Op: fake.OpStats, Err: fault.New(fault.KindUnavailable, "HTTP 500")})
	r = live.Round(t.Context(), "prod")
	require.NoError(t, r.Err)
	require.ErrorContains(t, r.FiguresErr, "HTTP 500")
	assert.Len(t, r.Rows, 3)
	assert.Nil(t, r.Figures.Counts.Active)

	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "HTTP 503")})
	failed := live.Round(t.Context(), "prod")
	require.ErrorContains(t, failed.Err, "HTTP 503")
	require.ErrorContains(t, failed.Connection.Err, "HTTP 503")
	assert.Equal(t, r.Connection.CompleteAt, failed.Connection.CompleteAt)
}

// TestALookTellsWhyAndWhatCameOut: the causes as inspect ranks them, and the newest lines.
func TestALookTellsWhyAndWhatCameOut(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	seed := opstest.Seeds("loop0001")[0]
	for i := range 30 {
		seed.Logs = append(seed.Logs, sandbox.LogLine{At: time.Now().Add(-20 * time.Minute), Stream: "stdout", Text: "planning step " + strconv.Itoa(i)})
	}
	began, samples := time.Now(), 0.0
	seed.Usage = func(time.Time) sandbox.Usage { // a whole core
		samples++
		return sandbox.Usage{At: began.Add(time.Duration(samples) * time.Second), CPUSeconds: new(samples)}
	}
	p.Add(seed)
	live, err := look.NewLive(t.Context(), opstest.NewSite(t, opstest.OneProfile, p).Env(t))
	require.NoError(t, err)
	looks := live.Look(t.Context(), []sandbox.Sandbox{*live.Round(t.Context(), "prod").Rows[0].Sandbox})
	require.Len(t, looks, 1)
	require.Len(t, looks[0].Output, 2)
	assert.Equal(t, "planning step 29", looks[0].Output[1].Text)
	require.Greater(t, len(looks[0].Causes), 1)
	assert.Equal(t, sandbox.CauseBusyLoop, looks[0].Causes[0].Cause)
	assert.NotEmpty(t, looks[0].Causes[1].WhyNot)
	assert.Regexp(t, `^busy loop \(age `, live.WhyStuck(looks[0].Sandbox.Ref()), "the reason of a plan")
	assert.Empty(t, live.WhyStuck(sandbox.Ref{Provider: "prod", ID: "another"}))
}
