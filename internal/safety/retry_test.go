package safety_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/safety"
)

// TestRefusalHasTheRetryLine: the hint of a refusal is a line to paste, with every flag that is needed.
func TestRefusalHasTheRetryLine(t *testing.T) {
	t.Parallel()
	l := safety.Limits{MaxDelete: 20, MaxFraction: 25, Production: []string{"prod"}}
	many, marked := l.MaxDeleteGuard(26, safety.Ending()), l.MaxDeleteGuard(31, safety.Marking())
	share, production := l.FractionGuard("prod", 26, 60, safety.Ending()), l.ProductionGuard("prod", 26, safety.Ending())
	typed := []string{"sbx", "cleanup", "--stuck", "--max-delete", "5", "--max-fraction=10%", "--yes"}
	for name, tc := range map[string]struct {
		guards []safety.Guard
		line   []string
		want   string
	}{
		"one guard":             {[]safety.Guard{many}, typed[:3], "`sbx cleanup --stuck --max-delete 26`"},
		"earlier values go":     {[]safety.Guard{many, share}, typed, "`sbx cleanup --stuck --yes --max-delete 26 --max-fraction 44%`"},
		"production is named":   {[]safety.Guard{production}, typed[:3], "`sbx cleanup --stuck --production prod`"},
		"the higher value":      {[]safety.Guard{marked, many}, typed[:3], "`sbx cleanup --stuck --max-delete 31`"},
		"nothing was typed":     {[]safety.Guard{many}, nil, "to do it: --max-delete 26"},
		"a guard of a journal":  {[]safety.Guard{{Name: "max_delete", Limit: 20, Value: 26}}, typed[:3], "`sbx cleanup --stuck --max-delete 26`"},
		"no flag allows a skew": {[]safety.Guard{many, safety.ClockGuard("prod", 3*safety.MaxSkew)}, typed[:3], "clock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := safety.Refusal(tc.guards, "see the plan first", tc.line...)
			require.Equal(t, fault.KindRefused, fault.KindOf(err))
			assert.Contains(t, fault.HintOf(err), tc.want)
		})
	}
}
