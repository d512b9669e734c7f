package commands

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/providers/fake"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
	"sbx/internal/views"
)

// sampling is a sampler over one provider, without a command around it.
func sampling(t *testing.T, b *bench, o topOptions) (*sampler, *output.Progress) {
	t.Helper()
	d := b.deps(t)
	f, err := d.Fleet(t.Context())
	require.NoError(t, err)
	p, err := d.Printer()
	require.NoError(t, err)
	return newSampler(d, f, o), p.Progress("sampling")
}

func TestSamplerForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := oneFake(calm(), loop())
		s, progress := sampling(t, b, topOptions{samples: 3, every: time.Second})
		for range 5 {
			rows, errs, err := s.look(t.Context(), progress)
			require.NoError(t, err)
			assert.Empty(t, errs)
			assert.Len(t, rows, 2)
			assert.Equal(t, 3, rows[0].Trend.Samples, "the last three")
		}
		assert.Len(t, p.Calls(fake.OpUsage), 2*(3+4))
		p.Change("loop0001", func(s *sandbox.Sandbox) { s.State = sandbox.StateTerminated })
		rows, errs, err := s.look(t.Context(), progress)
		require.NoError(t, err)
		assert.Empty(t, errs)
		assert.Len(t, rows, 1)
		assert.Len(t, s.past, 1, "what runs no more is not kept")
	})
}

func TestSamplerOfOneStillLearnsRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, _ := oneFake(loop())
		s, progress := sampling(t, b, topOptions{samples: 1, every: time.Second})
		rows, _, err := s.look(t.Context(), progress)
		require.NoError(t, err)
		assert.Nil(t, rows[0].Trend.CPUPercent)
		rows, _, err = s.look(t.Context(), progress)
		require.NoError(t, err)
		assert.NotNil(t, rows[0].Trend.CPUPercent)
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
				b, p := oneFake(loop())
				p.Break(fake.Fault{Op: fake.OpUsage, After: 1, Err: fault.New(tc.kind, "away")})
				s, progress := sampling(t, b, topOptions{samples: 2, every: time.Second, words: tc.words})
				rows, errs, err := s.look(t.Context(), progress)
				require.NoError(t, err)
				assert.Len(t, rows, 1, "what was seen before")
				assert.Equal(t, tc.fails, len(errs) == 1, errs)
			})
		})
	}
}

func TestBusiest(t *testing.T) {
	t.Parallel()
	row := func(id string, cpu *float64) views.UsageRow {
		return views.UsageRow{Ref: sandbox.Ref{Provider: "p", ID: id}, Trend: triage.Trend{CPUPercent: cpu}}
	}
	assert.Negative(t, busiest(row("b", new(9.0)), row("a", new(8.0))))
	assert.Negative(t, busiest(row("b", new(0.0)), row("a", nil)), "not known stands last")
	assert.Negative(t, busiest(row("a", nil), row("b", nil)))
	assert.Positive(t, busiest(row("b", new(1.0)), row("a", new(1.0))))
}

func TestDistinct(t *testing.T) {
	t.Parallel()
	a, b := errors.New("a"), errors.New("b")
	assert.Equal(t, []error{a, b}, distinct([]error{a, b, errors.New("a"), b}))
	assert.Empty(t, distinct(nil))
}

func TestTargetsAreThoseThatRun(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(calm(), oomed(), inState("term0001", time.Minute, sandbox.StateTerminating))
	s, _ := sampling(t, b, topOptions{samples: 1, every: time.Second})
	targets, errs := s.targets(t.Context())
	assert.Empty(t, errs)
	require.Len(t, targets, 1)
	assert.Equal(t, "calm0001", targets[0].ID)
}
