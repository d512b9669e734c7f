package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops"
)

// TestNothingToDoSaysForHowMany: what was found and stays is counted by reason; no step denies it.
func TestNothingToDoSaysForHowMany(t *testing.T) {
	t.Parallel()
	alone, unjudged := Target{Ref: "e2b/a", Reason: "not_owned: it has no owner", KeptBecause: "not yours"}, Target{Ref: "e2b/d", Reason: "activity_unknown: no source", KeptBecause: "not judged"}
	others := Target{Ref: "e2b/c", Reason: "not_selected: young"}
	for want, p := range map[string]actPlan{
		"there is nothing to terminate":                                      {},
		"there is nothing to terminate: it has no targets":                   {none: "it has no targets", kept: []Target{alone}},
		"there is nothing to terminate: e2b/c stays: not_selected: young":    {kept: []Target{others}},
		"1 not yours stay (e2b/a: not_owned: it has no owner)":               {kept: []Target{alone, others}},
		"2 not yours, 1 not judged stay (e2b/a: not_owned: it has no owner)": {kept: []Target{alone, unjudged, {Ref: "e2b/b", Reason: alone.Reason, KeptBecause: alone.KeptBecause}, others}},
	} {
		p.Act = &ops.Act{Verb: "terminate"}
		assert.Equal(t, want, nothingToDo(&p))
	}
}
