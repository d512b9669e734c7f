package drill

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestALiveDrillIsHandedOverAndRemoved: work sees what is staged by the limits of a drill, and nothing
// else; however that ends, nothing stays.
func TestALiveDrillIsHandedOverAndRemoved(t *testing.T) {
	t.Parallel()
	broken := errors.New("the terminal is gone")
	for name, tc := range map[string]struct {
		work func(stop func()) error
		err  error
	}{
		"left":        {work: func(func()) error { return nil }},
		"it fails":    {work: func(func()) error { return broken }, err: broken},
		"interrupted": {work: func(stop func()) error { stop(); return context.Canceled }, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
				p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "another1", State: sandbox.StateRunning, CreatedAt: time.Now()}})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				report, err := Live(ctx, on(t, p), func(ctx context.Context, stage Stage) error {
					f, err := stage.Env.Fleet(ctx)
					require.NoError(t, err)
					items := f.Collect(ctx, providers.Query{All: true}).Items
					assert.Len(t, items, len(stuckScenes()))
					for _, s := range items {
						assert.NotEqual(t, "another1", s.ID)
						assert.Equal(t, stagedThresholds().StuckAge, stage.Env.Thresholds(s).StuckAge)
						assert.GreaterOrEqual(t, time.Since(s.CreatedAt), stagedThresholds().StuckAge)
					}
					assert.NotEmpty(t, stage.Omit)
					return tc.work(stop)
				})
				require.ErrorIs(t, err, tc.err)
				assert.Equal(t, len(stuckScenes()), report.Staged)
				assert.Empty(t, report.LeftBehind)
				assert.Zero(t, leftOn(p))
				_, err = p.Get(t.Context(), "another1")
				require.NoError(t, err)
			})
		})
	}
}

// TestALiveDrillIsInterruptedWhileItStages: nobody gets it, and nothing stays.
func TestALiveDrillIsInterruptedWhileItStages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "local", After: fake.AfterGone})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := Live(ctx, on(t, p), func(context.Context, Stage) error {
			t.Error("it was handed over")
			return nil
		})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "%v", err)
		assert.Zero(t, leftOn(p))
	})
}

// TestWhatADrillStagesIsTiedToIt, unless it is kept.
func TestWhatADrillStagesIsTiedToIt(t *testing.T) {
	t.Parallel()
	for life, tied := range map[time.Duration]bool{maxLifetime: true, liveLifetime: true, keptLifetime: false} {
		spec := stuckScenes()[0].sandboxSpec("run", "sbx", life, life == keptLifetime)
		assert.Equal(t, tied, spec.Tied)
		assert.Equal(t, life, spec.TTL)
	}
}
