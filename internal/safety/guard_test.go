package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/safety"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	l := safety.Limits{MaxDelete: 20, MaxFraction: 25, Production: []string{"prod", "live"}, Allowed: []string{"live"}}
	for name, tc := range map[string]struct {
		guard safety.Guard
		ok    bool
	}{
		"as many as allowed":        {l.MaxDeleteGuard(20, safety.Ending()), true},
		"one more":                  {l.MaxDeleteGuard(21, safety.Ending()), false},
		"five of five":              {l.FractionGuard("p", 5, 5, safety.Ending()), true},
		"six of 24":                 {l.FractionGuard("p", 6, 24, safety.Ending()), true},
		"six of 23":                 {l.FractionGuard("p", 6, 23, safety.Ending()), false},
		"six of none":               {l.FractionGuard("p", 6, 0, safety.Marking()), false},
		"production":                {l.ProductionGuard("prod", 1, safety.Ending()), false},
		"production, none":          {l.ProductionGuard("prod", 0, safety.Ending()), true},
		"production, named":         {l.ProductionGuard("live", 9, safety.Ending()), true},
		"five by name":              {safety.UnaskedGuard(5, false, "", safety.Ending()), true},
		"six by name":               {safety.UnaskedGuard(6, false, "", safety.Ending()), false},
		"six by name, allowed":      {safety.UnaskedGuard(6, true, "", safety.Ending()), true},
		"clocks two minutes apart":  {safety.ClockGuard("p", -2*time.Minute), true},
		"clocks further apart":      {safety.ClockGuard("p", 2*time.Minute+time.Second), false},
		"clocks further apart, too": {safety.ClockGuard("p", -2*time.Minute-time.Second), false},
	} {
		assert.Equal(t, tc.ok, tc.guard.OK, name)
		err := safety.Refusal([]safety.Guard{tc.guard}, "look")
		if tc.ok {
			require.NoError(t, err, name)
			continue
		}
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), name)
		assert.NotEmpty(t, fault.HintOf(err), name)
	}
}

func TestWhoIsNamed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		chosen []safety.Choice
		want   int
	}{
		{nil, 0},
		{[]safety.Choice{safety.ByReference}, 0},
		{[]safety.Choice{safety.ByWord}, 1},
		{[]safety.Choice{safety.ByRule}, 1},
		{[]safety.Choice{safety.ByReference, safety.ByReference}, 2},
	} {
		assert.Equal(t, tc.want, safety.Unnamed(tc.chosen), "%v", tc.chosen)
	}
}

func TestARefusalNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	l := safety.Limits{MaxDelete: 1, MaxFraction: 25, Production: []string{"prod"}}
	both := []safety.Guard{l.MaxDeleteGuard(6, safety.Ending()), l.FractionGuard("prod", 6, 12, safety.Ending()), l.ProductionGuard("prod", 6, safety.Ending())}
	err := safety.Refusal(both, "look first")
	require.EqualError(t, err, "6 sandboxes would end, more than --max-delete 1; "+
		"6 of the 12 sandboxes of prod would end, 50% and more than --max-fraction 25%; 6 sandboxes of prod, which is production, would end; nothing was done")
	assert.Equal(t, "look first; then, to do it: --max-delete 6 --max-fraction 50% --production prod", fault.HintOf(err))
	err = safety.Refusal(append(both, safety.ClockGuard("prod", time.Hour)), "look first")
	assert.Equal(t, "correct this machine's clock", fault.HintOf(err), "no flag allows it")
	value, limit := both[1].Figures()
	assert.Equal(t, "50% 25%", value+" "+limit)
	value, limit = both[0].Figures()
	assert.Equal(t, "6 1", value+" "+limit)
}
