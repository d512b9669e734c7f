// Package planted builds the tests of a room with mistakes in the source of the program, so that a test can show that
// another one may fail. What a mistake is, and who has to find it, is in the rooms.
package planted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Build compiles the tests of the package in the current folder, with these sources in place of the files of their
// paths, which are relative to it. It returns the binary.
func Build(t *testing.T, sources map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mistaken.test")
	replaced := map[string]string{}
	for file, text := range sources {
		here, err := filepath.Abs(file)
		require.NoError(t, err)
		replaced[here] = filepath.Join(dir, strconv.Itoa(len(replaced))+".go")
		require.NoError(t, os.WriteFile(replaced[here], text, 0o600))
	}
	raw, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}
