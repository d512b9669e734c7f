package commands

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/fake"
	"sbx/internal/sandbox"
)

// What came up since a plan was made, and is older than what it names, does not mix up
// who was seen to do what.
func TestAPlanBesideWhatCameUpSince(t *testing.T) {
	t.Parallel()
	said := func(seeds []fake.Seed) []fake.Seed {
		for i := range seeds {
			seeds[i].Logs = []sandbox.LogLine{{At: seeds[i].Sandbox.CreatedAt, Text: "I am " + seeds[i].Sandbox.ID}}
		}
		return seeds
	}
	b, p := oneFake(said(quietHerd("prod", 4))...)
	b.configure(t, "providers:\n  prod: {type: local}\n")
	plan := filepath.Join(b.home, "plan.json")
	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --out "+plan).code)
	p.Add(said([]fake.Seed{quiet("new00001", time.Hour)})...)
	r := b.run(t, "cleanup --apply "+plan+" --yes --max-fraction 100% -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Len(t, p.Calls(fake.OpTerminate), 4)
	run, ok := r.object(t)["run_id"].(string)
	require.True(t, ok)
	for _, row := range b.run(t, "cleanup show "+run+" -o json").list(t, "items") {
		before, ok := row["before"].(map[string]any)
		require.True(t, ok, row)
		assert.Equal(t, []any{strings.Replace(fmt.Sprint(row["ref"]), "prod/", "I am ", 1)}, before["logs"])
	}
}
