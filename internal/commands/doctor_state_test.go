package commands

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDoctorSaysWhereStateIs: below HOME, whatever lies below the passwd home.
func TestDoctorSaysWhereStateIs(t *testing.T) {
	t.Parallel()
	b, _ := oneFake()
	b.home = t.TempDir()
	home := t.TempDir()
	b.env = append(b.env, "HOME="+home)
	require.NoError(t, os.MkdirAll(filepath.Join(b.home, ".local/state/sbx/runs"), 0o700))
	items := b.run(t, "doctor -o json").list(t, "items")
	i := slices.IndexFunc(items, func(item map[string]any) bool { return item["check"] == "state directory" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, filepath.Join(home, ".local/state/sbx")+" can be written", items[i]["message"])
}
