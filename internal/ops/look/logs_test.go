package look

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		size int
		add  []int
		want []int
	}{
		"empty":  {3, nil, nil},
		"fewer":  {3, []int{1, 2}, []int{1, 2}},
		"full":   {3, []int{1, 2, 3}, []int{1, 2, 3}},
		"turned": {3, []int{1, 2, 3, 4, 5}, []int{3, 4, 5}},
		"twice":  {2, []int{1, 2, 3, 4, 5}, []int{4, 5}},
		"one":    {1, []int{1, 2}, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := ring[int]{size: tc.size}
			for _, v := range tc.add {
				r.push(v)
			}
			var got []int
			for v := range r.oldestFirst() {
				got = append(got, v)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}
