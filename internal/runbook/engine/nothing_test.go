package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops"
)

// TestNothingToDoSaysForHowMany: one reason that holds for many is said once, before a reference.
func TestNothingToDoSaysForHowMany(t *testing.T) {
	t.Parallel()
	alone, others := Target{"e2b/a", "not_owned: it has no owner"}, Target{"e2b/c", "not_selected: young"}
	for want, p := range map[string]actPlan{
		"there is nothing to terminate":                                                        {},
		"there is nothing to terminate: it has no targets":                                     {none: "it has no targets", kept: []Target{alone}},
		"there is nothing to terminate: e2b/a stays: not_owned: it has no owner":               {kept: []Target{alone, others}},
		"there is nothing to terminate: 2 stay: not_owned: it has no owner (e2b/a and 1 more)": {kept: []Target{alone, {"e2b/b", alone.Reason}, others}},
	} {
		p.Act = &ops.Act{Verb: "terminate"}
		assert.Equal(t, want, nothingToDo(&p))
	}
}
