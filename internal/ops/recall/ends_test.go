package recall

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// TestAPrefixNamesOneSandboxOrNone: the record of another is never told as a fact.
func TestAPrefixNamesOneSandboxOrNone(t *testing.T) {
	t.Parallel()
	one, two := sandbox.Ref{Provider: "prod", ID: "abcd1"}, sandbox.Ref{Provider: "prod", ID: "abcd2"}
	h := runs.History{Intents: map[sandbox.Ref]runs.Intent{one: {}, two: {Name: "abcd"}}}
	for word, want := range map[string]sandbox.Ref{"abcd1": one, "abcd2": two, "abcd": two, "abc": {}} {
		means := func(of sandbox.Ref, name string) bool { return name == word || strings.HasPrefix(of.ID, word) }
		got, found := chosenOf(word, recordedIn(h), means)
		assert.Equal(t, want != sandbox.Ref{}, found, word)
		if found {
			assert.Equal(t, want, got, word)
		}
	}
}

// TestOnlyActsThatEndAreEnds: what a reconcile put on record, or marked there, it has not ended.
func TestOnlyActsThatEndAreEnds(t *testing.T) {
	t.Parallel()
	ref := sandbox.Ref{Provider: "prod", ID: "abcd1"}
	for action, ends := range map[string]bool{"": true, "terminate": true, "delete": true, "adopt": false, "mark_terminated": false} {
		h := runs.History{
			RunID: "r-1", Begin: runs.Begin{Verb: runs.VerbReconcile, Plan: runs.Plan{Items: []runs.Item{{Ref: ref}}}},
			Intents: map[sandbox.Ref]runs.Intent{ref: {Ref: ref, Action: action}},
			Results: map[sandbox.Ref]runs.Result{ref: {Ref: ref, Outcome: sandbox.OutcomeVerified}},
		}
		r, found := endInRun(h, ref.ID, func(of sandbox.Ref, _ string) bool { return of == ref })
		assert.Equal(t, ends, found, action)
		assert.Equal(t, ends, r.Run == "r-1", action)
	}
}
