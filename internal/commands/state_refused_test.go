//go:build unix

package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestVerbsAboutRecordsRefuseAForeignStateDirectory: where somebody else controls it, a listing of
// nothing would look as if nothing were on record.
func TestVerbsAboutRecordsRefuseAForeignStateDirectory(t *testing.T) {
	t.Parallel()
	b, _ := oneFake()
	b.configure(t, "providers:\n  prod: {type: local}\n")
	open := filepath.Join(b.home, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	b.env = append(b.env, "SBX_STATE_DIR="+open)
	for _, line := range []string{"tasks", "tasks show t-abcd1234", "report", "cleanup status", "cron check", "cron print", "reconcile"} {
		r := b.run(t, line)
		assert.Equal(t, 11, r.code, "%s: %s", line, r.stderr)
		assert.Contains(t, r.stderr, "SBX_STATE_DIR", line)
	}
}
