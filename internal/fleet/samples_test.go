package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		latency time.Duration
		n       int
		took    time.Duration
	}{
		"one round has no pause":     {0, 1, 0},
		"three rounds, two pauses":   {0, 3, 20 * time.Second},
		"a slow round is counted in": {4 * time.Second, 3, 24 * time.Second},
		"too slow a round delays":    {15 * time.Second, 3, 45 * time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod", Latency: tc.latency})
			p.Add(box("a", ""), box("b", ""))
			want := []sandbox.Ref{{Provider: "prod", ID: "b"}, {Provider: "prod", ID: "nobody"}, {Provider: "prod", ID: "a"}}
			began := time.Now()
			rounds := 0
			for r := range of(p).Samples(t.Context(), want, tc.n, 10*time.Second) {
				rounds++
				require.Len(t, r.Samples, 3)
				for i, s := range r.Samples {
					assert.Equal(t, want[i], s.Ref, "in the order that was asked for")
					assert.Equal(t, s.Ref.ID == "nobody", s.Err != nil)
				}
				assert.Equal(t, fault.KindNotFound, fault.KindOf(r.Samples[1].Err))
				assert.False(t, r.At.IsZero())
			}
			assert.Equal(t, tc.n, rounds)
			assert.Equal(t, tc.took, time.Since(began))
		})
	}
}

func TestSamplesWorkOutCPU(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seconds []float64
		percent []float64 // -1 = nil
		fixed   *float64
	}{
		"half a core":          {[]float64{1, 6, 11}, []float64{-1, 50, 50}, nil},
		"two cores":            {[]float64{0, 20}, []float64{-1, 200}, nil},
		"idle is 0, not nil":   {[]float64{3, 3}, []float64{-1, 0}, nil},
		"a counter that fell":  {[]float64{9, 1, 2}, []float64{-1, -1, 10}, nil},
		"the provider's stays": {[]float64{0, 20}, []float64{7, 7}, new(7.0)},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			i := 0
			p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "a"}, Usage: func(time.Time) sandbox.Usage {
				u := sandbox.Usage{CPUSeconds: &tc.seconds[i], CPUPercent: tc.fixed}
				i++
				return u
			}})
			var got []float64
			for r := range of(p).Samples(t.Context(), []sandbox.Ref{{Provider: "prod", ID: "a"}}, len(tc.seconds), 10*time.Second) {
				if c := r.Samples[0].Usage.CPUPercent; c != nil {
					got = append(got, *c)
				} else {
					got = append(got, -1)
				}
			}
			assert.Equal(t, tc.percent, got)
		})
	}
}

func TestSamplesStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := of(stocked("prod", "a"))
		refs := []sandbox.Ref{{Provider: "prod", ID: "a"}}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		rounds := 0
		for range f.Samples(ctx, refs, 0, 10*time.Second) {
			rounds++
		}
		assert.Equal(t, 3, rounds, "at 0, 10 and 20 s")
		for range f.Samples(t.Context(), refs, 0, time.Second) {
			rounds++
			break
		}
		assert.Equal(t, 4, rounds)
	})
}

func TestSamplesWithoutTheAbility(t *testing.T) {
	t.Parallel()
	bare := fake.New(fake.Options{Name: "bare"}).Bare()
	for r := range of(bare, providers.Provider(stocked("prod", "a"))).Samples(t.Context(), []sandbox.Ref{{Provider: "bare", ID: "x"}, {Provider: "prod", ID: "a"}}, 1, time.Second) {
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(r.Samples[0].Err))
		assert.NoError(t, r.Samples[1].Err)
	}
}
