package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/reconcile"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// crowd is a fleet with numbers of correct, leaked and ghost sandboxes.
func crowd(fine, leaks, ghosts int) *scene {
	s := newScene()
	for i := range fine {
		id := fmt.Sprintf("fine%03d", i)
		s.on(recorded(id, is)).box(id, old)
	}
	for i := range leaks {
		id := fmt.Sprintf("leak%03d", i)
		s.on(recorded(id, isNot)).box(id, old)
	}
	for i := range ghosts {
		s.on(recorded(fmt.Sprintf("ghost%03d", i), is))
	}
	return s
}

func TestWhatIsTooMuchIsRefusedWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scene *scene
		edit  func(*scene)
		guard string // "" = allowed
	}{
		"records: one too many":       {crowd(100, 0, 21), nil, "21 records would be marked as ended, more than --max-delete 20"},
		"records: a quarter and one":  {crowd(17, 0, 6), nil, "6 of the 23 records of prod would be marked as ended"},
		"records: all, and none left": {crowd(0, 0, 6), nil, "6 of the 6 records of prod would be marked as ended"},
		"another production":          {crowd(60, 1, 0), func(s *scene) { s.limits.Production = []string{"live"} }, ""},
		"production, in order":        {crowd(60, 0, 0), func(s *scene) { s.limits.Production = []string{"prod"} }, ""},
		"clocks far apart":            {crowd(60, 1, 0), func(s *scene) { s.prod.SetSkew(-3 * time.Minute) }, "no age can be trusted"},
		"clocks far apart, in order":  {crowd(60, 0, 0), func(s *scene) { s.prod.SetSkew(3 * time.Minute) }, ""},
		"an old dump":                 {crowd(60, 1, 0), func(s *scene) { s.source.AsOf = noon.Add(-61 * time.Minute) }, "records_age"},
		"a dump of tomorrow":          {crowd(60, 1, 0), func(s *scene) { s.source.AsOf = noon.Add(24 * time.Hour) }, "records_age"},
		"a fresh dump":                {crowd(60, 1, 0), func(s *scene) { s.source.AsOf = noon.Add(-50 * time.Minute) }, ""},
		"an old dump, in order": {crowd(60, 0, 0), func(s *scene) {
			s.source.AsOf = noon.Add(-9 * time.Hour)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.scene
			if c.edit != nil {
				c.edit(s)
			}
			plan := s.proved(t)
			seq, err := s.engine(t).Fix(t.Context(), plan, s.how())
			if c.guard == "" {
				require.NoError(t, err)
				return
			}
			assert.Nil(t, seq)
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			require.ErrorContains(t, err, c.guard)
			assert.NotEmpty(t, fault.HintOf(err))
			assert.Equal(t, 0, s.asked())
			assert.Empty(t, s.marked)
		})
	}
}

func TestGuardsShowTheirFigures(t *testing.T) {
	t.Parallel()
	s := crowd(17, 6, 1)
	byName := map[string]safety.Guard{}
	for _, g := range s.proved(t).Guards(s.limits) {
		byName[g.Name] = g
	}
	share := byName["max_fraction prod"]
	assert.InDelta(t, 6.0/23, share.Value, 0.0001, "a share from 0 to 1")
	assert.InDelta(t, 0.25, share.Limit, 0.0001)
	value, limit := share.Figures()
	assert.Equal(t, "27% 25%", value+" "+limit, "6 of 23, rounded up")
	assert.False(t, share.OK)
	assert.InDelta(t, 6, byName["max_delete"].Value, 0)
	assert.InDelta(t, 1, byName["max_delete records"].Value, 0)
}

// TestTheWholeFleetIsCountedWithoutWhatHasEnded: ended sandboxes do not reduce the share.
func TestTheWholeFleetIsCountedWithoutWhatHasEnded(t *testing.T) {
	t.Parallel()
	s := crowd(17, 6, 0)
	for i := range 50 {
		id := fmt.Sprintf("past%03d", i)
		s.on(reconcile.Record{Record: providers.Record{SandboxID: id, Live: isNot}}).box(id, old, state(sandbox.StateTerminated))
	}
	_, err := s.engine(t).Fix(t.Context(), s.proved(t), s.how())
	assert.ErrorContains(t, err, "6 of the 23 sandboxes of prod would end")
}
