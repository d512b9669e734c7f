package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// TestDoctorSaysWhereStateIs, and prints the command that moves what an earlier version has
// kept below the passwd home.
func TestDoctorSaysWhereStateIs(t *testing.T) {
	t.Parallel()
	row := func(b *bench) map[string]any {
		for _, item := range b.run(t, "doctor -o json").list(t, "items") {
			if item["check"] == "state directory" {
				return item
			}
		}
		t.Fatal("no row")
		return nil
	}
	b, _ := oneFake()
	b.home = t.TempDir()
	home := t.TempDir()
	now, old := filepath.Join(home, ".local/state/sbx"), filepath.Join(b.home, ".local/state/sbx")
	b.env = append(b.env, "HOME="+home)
	assert.Equal(t, now+" can be written", row(b)["message"])
	require.NoError(t, os.RemoveAll(now))

	require.NoError(t, os.MkdirAll(filepath.Join(old, "runs"), 0o700))
	got := row(b)
	assert.Equal(t, string(sandbox.True), got["verdict"])
	assert.Equal(t, old+" can be written; it is the place of an earlier version", got["message"])
	assert.Contains(t, got["hint"], "`mkdir -p "+filepath.Dir(now)+" && mv "+old+" "+now+"`")
	require.NoError(t, os.MkdirAll(now, 0o700))
	assert.Contains(t, row(b)["hint"], "`rmdir "+now+" && mv "+old+" "+now+"`")

	require.NoError(t, os.MkdirAll(filepath.Join(now, "runs"), 0o700))
	got = row(b)
	assert.Contains(t, got["message"], now+" can be written; "+old+" of an earlier version is not used")
	assert.Contains(t, got["hint"], "SBX_STATE_DIR="+old)
}
