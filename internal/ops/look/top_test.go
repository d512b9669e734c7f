package look

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
	"sbx/internal/triage"
)

// burner is a sandbox that uses a whole processor, in samples a second apart.
func burner(id string) fake.Seed {
	began := time.Now()
	var n atomic.Int64
	return fake.Seed{
		Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning, CreatedAt: began.Add(-time.Hour), StartedAt: began.Add(-time.Hour)},
		Usage: func(time.Time) sandbox.Usage {
			i := n.Add(1)
			return sandbox.Usage{At: began.Add(time.Duration(i) * time.Second), CPUSeconds: new(float64(i)), Source: "fake"}
		},
	}
}

// sampling is a sampler over one provider with these sandboxes.
func sampling(t *testing.T, req TopRequest, seeds ...fake.Seed) (*Sampler, *fake.Provider) {
	t.Helper()
	p := fake.New(fake.Options{Name: "prod", Now: time.Now})
	p.Add(seeds...)
	env := &ops.Env{
		Process: process.Process{Now: time.Now},
		Config:  func() (*config.Config, error) { return &config.Config{}, nil },
		Fleet: func(context.Context) (*fleet.Fleet, error) {
			return fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Now: time.Now, Sample: time.Millisecond}), nil
		},
	}
	s, err := NewSampler(t.Context(), env, req)
	require.NoError(t, err)
	return s, p
}

func TestSamplerForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := sampling(t, TopRequest{Samples: 3, Every: time.Second}, burner("calm0001"), burner("loop0001"))
		for range 5 {
			r, err := s.Look(t.Context(), &opstest.Recorder{})
			require.NoError(t, err)
			assert.Empty(t, r.Errors)
			assert.Len(t, r.Usage, 2)
			assert.Equal(t, 3, r.Usage[0].Trend.Samples, "the last three")
		}
		assert.Len(t, p.Calls(fake.OpUsage), 2*(3+4))
		p.Change("loop0001", func(s *sandbox.Sandbox) { s.State = sandbox.StateTerminated })
		r, err := s.Look(t.Context(), &opstest.Recorder{})
		require.NoError(t, err)
		assert.Empty(t, r.Errors)
		assert.Len(t, r.Usage, 1)
		assert.Len(t, s.past, 1, "what runs no more is not kept")
	})
}

func TestSamplerOfOneStillLearnsRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := sampling(t, TopRequest{Samples: 1, Every: time.Second}, burner("loop0001"))
		r, err := s.Look(t.Context(), &opstest.Recorder{})
		require.NoError(t, err)
		assert.Nil(t, r.Usage[0].Trend.CPUPercent)
		r, err = s.Look(t.Context(), &opstest.Recorder{})
		require.NoError(t, err)
		assert.NotNil(t, r.Usage[0].Trend.CPUPercent)
	})
}

func TestWhatEndsBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		words []string
		kind  fault.Kind
		fails bool
	}{
		"nobody named it":      {nil, fault.KindNotFound, false},
		"nobody named it, 410": {nil, fault.KindGone, false},
		"named":                {[]string{"prod/loop0001"}, fault.KindGone, true},
		"another trouble":      {nil, fault.KindUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, p := sampling(t, TopRequest{Samples: 2, Every: time.Second, Words: tc.words}, burner("loop0001"))
				p.Break(fake.Fault{Op: fake.OpUsage, After: 1, Err: fault.New(tc.kind, "away")})
				r, err := s.Look(t.Context(), &opstest.Recorder{})
				require.NoError(t, err)
				assert.Len(t, r.Usage, 1, "what was seen before")
				assert.Equal(t, tc.fails, len(r.Errors) == 1, r.Errors)
			})
		})
	}
}

// TestWhatIsFrozenHasARow: its figures are not known, and the look ends in the time that its provider has.
func TestWhatIsFrozenHasARow(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		words []string
		seeds []fake.Seed
	}{
		"alone":         {[]string{"prod/froz0001"}, []fake.Seed{burner("froz0001")}},
		"beside others": {nil, []fake.Seed{burner("froz0001"), burner("loop0001")}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s, p := sampling(t, TopRequest{Samples: 5, Every: time.Second, Words: tc.words}, tc.seeds...)
			p.Break(fake.Fault{Op: fake.OpUsage, ID: "froz0001", Hang: true})
			began := time.Now()
			r, err := s.Look(t.Context(), &opstest.Recorder{})
			require.NoError(t, err)
			assert.Less(t, time.Since(began), fleet.DefaultTimeout+10*time.Second, "it is not asked again")
			require.Len(t, r.Usage, len(tc.seeds))
			assert.Empty(t, r.Errors)
			at := slices.IndexFunc(r.Usage, func(u SandboxUsage) bool { return u.Sandbox.ID == "froz0001" })
			frozen := r.Usage[at]
			require.ErrorContains(t, frozen.Err, "no answer within 20s")
			assert.Nil(t, frozen.Trend.CPUPercent)
			assert.Equal(t, sandbox.Unknown, frozen.Verdict.Stuck)
		})
	}
}

func TestBusiest(t *testing.T) {
	t.Parallel()
	row := func(id string, cpu *float64) SandboxUsage {
		return SandboxUsage{Sandbox: sandbox.Sandbox{Provider: "p", ID: id}, Trend: triage.Trend{CPUPercent: cpu}}
	}
	assert.Negative(t, compareByCPU(row("b", new(9.0)), row("a", new(8.0))))
	assert.Negative(t, compareByCPU(row("b", new(0.0)), row("a", nil)), "not known stands last")
	assert.Negative(t, compareByCPU(row("a", nil), row("b", nil)))
	assert.Positive(t, compareByCPU(row("b", new(1.0)), row("a", new(1.0))))
}

func TestWithoutDuplicates(t *testing.T) {
	t.Parallel()
	a, b := errors.New("a"), errors.New("b")
	assert.Equal(t, []error{a, b}, withoutDuplicates([]error{a, b, errors.New("a"), b}))
	assert.Empty(t, withoutDuplicates(nil))
}

func TestTargetsAreThoseThatRun(t *testing.T) {
	t.Parallel()
	ended, ending := burner("oomd0001"), burner("term0001")
	ended.Sandbox.State, ending.Sandbox.State = sandbox.StateFailed, sandbox.StateTerminating
	s, _ := sampling(t, TopRequest{Samples: 1, Every: time.Second}, burner("calm0001"), ended, ending)
	targets, errs := s.listTargets(t.Context())
	assert.Empty(t, errs)
	require.Len(t, targets, 1)
	assert.Equal(t, "calm0001", targets[0].ID)
}
