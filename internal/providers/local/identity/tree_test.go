package identity

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	all := []Stat{
		{PID: 1, PPID: 0},
		{PID: 10, PPID: 1},
		{PID: 30, PPID: 20}, // listed before its parent
		{PID: 20, PPID: 10},
		{PID: 21, PPID: 10, State: 'Z'},
		{PID: 40, PPID: 30},
		{PID: 11, PPID: 1},
		{PID: 50, PPID: 51},
		{PID: 51, PPID: 50}, // a ring
		{PID: 60, PPID: 60}, // its own parent
		{PID: 70, PPID: 69}, // listed twice
		{PID: 70, PPID: 70},
	}
	for name, tc := range map[string]struct {
		pid  int
		want []int
	}{
		"nearest first, zombies too": {10, []int{20, 21, 30, 40}},
		"everybody of init":          {1, []int{10, 11, 20, 21, 30, 40}},
		"a leaf":                     {40, nil},
		"nobody":                     {99, nil},
		"a ring ends":                {50, []int{51}},
		"its own parent":             {60, nil},
		"listed twice":               {69, []int{70}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int
			for _, s := range descendantsOf(all, tc.pid) {
				got = append(got, s.PID)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}
