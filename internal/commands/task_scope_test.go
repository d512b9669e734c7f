package commands

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProviderLimitsTasks: what has to do with another profile is neither listed, shown, stopped nor gone on with, by
// whatever word, and so no tool of an assistant reaches it.
func TestProviderLimitsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local", "other")
		require.Equal(t, 0, b.run(t, "run --provider local --keep-alive --key one -- true").code)
		require.Equal(t, 0, b.run(t, "run --provider local --fallback other --key two -- true").code)
		all := b.run(t, "tasks -o json").list(t, "items")
		require.Len(t, all, 2)
		one, _ := b.run(t, "tasks show one -o json").item(t)["task"].(string)

		assert.Empty(t, b.run(t, "tasks --provider other -o json").list(t, "items"))
		assert.Len(t, b.run(t, "tasks --provider local -o json").list(t, "items"), 1, "the other may have gone on elsewhere")
		assert.Len(t, b.run(t, "tasks --provider local --provider other -o json").list(t, "items"), 2)
		for _, word := range []string{one, one[:8], "one"} {
			for _, line := range []string{"tasks show --provider other " + word, "stop --provider other " + word, "resume --provider other " + word + " -- true"} {
				r := b.run(t, line)
				assert.Equal(t, 5, r.code, "%s: %s", line, r.stderr)
				assert.Contains(t, r.stderr, "is a task of local, and --provider names only other", line)
			}
		}
		assert.Equal(t, 0, b.run(t, "tasks show --provider local "+one).code)
		assert.NotNil(t, b.run(t, "tasks show -o json "+one).item(t)["kept"], "no stop has reached it")
		assert.Equal(t, 0, b.run(t, "stop --provider local "+one).code)
	})
}
