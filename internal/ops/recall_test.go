package ops

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/cleanup"
	"sbx/internal/sandbox"
)

// TestAPrefixNamesOneSandboxOrNone: the record of another is never told as a fact.
func TestAPrefixNamesOneSandboxOrNone(t *testing.T) {
	t.Parallel()
	one, two := sandbox.Ref{Provider: "prod", ID: "abcd1"}, sandbox.Ref{Provider: "prod", ID: "abcd2"}
	h := cleanup.History{Intents: map[sandbox.Ref]cleanup.Intent{one: {}, two: {Name: "abcd"}}}
	for word, want := range map[string]sandbox.Ref{"abcd1": one, "abcd2": two, "abcd": two, "abc": {}} {
		means := func(of sandbox.Ref, name string) bool { return name == word || strings.HasPrefix(of.ID, word) }
		got, found := chosenOf(word, recordedIn(h), means)
		assert.Equal(t, want != sandbox.Ref{}, found, word)
		if found {
			assert.Equal(t, want, got, word)
		}
	}
}
