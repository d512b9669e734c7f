//go:build unix

package lock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/lock"
)

// A link in the state directory would have sbx write a file of somebody's choice.
func TestALinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cleanup.lock", "cleanup.lock.holder"} {
		dir := t.TempDir()
		precious, absent := filepath.Join(dir, "precious"), filepath.Join(dir, "absent")
		require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
		for _, target := range []string{precious, absent} {
			state := t.TempDir()
			require.NoError(t, os.Symlink(target, filepath.Join(state, name)))
			_, err := lock.Take(t.Context(), filepath.Join(state, "cleanup.lock"), holder("r"), 0)
			require.Error(t, err, "%s -> %s", name, target)
		}
		text, err := os.ReadFile(precious)
		require.NoError(t, err)
		assert.Equal(t, "precious", string(text))
		assert.NoFileExists(t, absent)
	}
}

// Who waits is told at once, also where a pipe stands in place of the holder's name.
func TestAPipeInPlaceOfTheHolderKeepsNobody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cleanup.lock")
	held, err := lock.Take(t.Context(), path, holder("r-1"), 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path+".holder"))
	require.NoError(t, syscall.Mkfifo(path+".holder", 0o600))
	_, err = lock.Take(t.Context(), path, holder("r-2"), 0)
	require.EqualError(t, err, "another run is active")
	require.NoError(t, held.Release())
}
