package ops

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fleet"
)

func TestALookSaysWhoHasNotAnswered(t *testing.T) {
	t.Parallel()
	for want, at := range map[string]fleet.LookProgress{
		"looked at 9 of 9": {Done: 9, All: 9},
		"looked at 120 of 1,000, e2b: 87 wait for an answer":    {Done: 120, All: 1000, Waiting: map[string]int{"e2b": 87}},
		"looked at 0 of 9, b: 3, a: 2, c: 2 wait for an answer": {All: 9, Waiting: map[string]int{"a": 2, "b": 3, "c": 2}},
		"looked at 0 of 9, a: 1, b: 1, c: 1 and 1 more wait for an answer": {All: 9, Waiting: map[string]int{
			"a": 1, "b": 1, "c": 1, "d": 1,
		}},
	} {
		assert.Equal(t, want, lookText(at))
	}
}

func TestCountsArePrintedForPeople(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "0 of 999", PartText(0, 999))
	assert.Equal(t, "3,412 of 10,000", PartText(3412, 10000))
	assert.Equal(t, "1,000,007 of 1,002,003", PartText(1000007, 1002003))
}
