// Package planted runs the tests of a room with mistakes in the source of the program, so that a test can show that
// another one may fail. What a mistake is, and who has to find it, is in the rooms.
package planted

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each plays each mistake whose name has the word in SBX_MUTATIONS, or all of them, as a subtest. Where that is not set it
// skips the test.
func Each[M any](t *testing.T, mistakes map[string]M, play func(t *testing.T, mistake M)) {
	t.Helper()
	only := os.Getenv("SBX_MUTATIONS") //nolint:forbidigo // for tests only
	if only == "" {
		t.Skip("it takes minutes, and `.ci/run mutations` runs it; SBX_MUTATIONS=all, or a word of a mistake's name, does too")
	}
	for name, mistake := range mistakes {
		if only == "all" || strings.Contains(name, only) {
			t.Run(name, func(t *testing.T) { play(t, mistake) })
		}
	}
}

// Run builds the tests of the package in the current folder with mistakes, and runs one of them with more environment. It
// returns what that has printed, and an error where it fails. sources are in place of the files of their paths, which are
// relative to the folder.
func Run(t *testing.T, sources map[string][]byte, test string, env ...string) (string, error) {
	t.Helper()
	run := exec.CommandContext(t.Context(), build(t, sources), "-test.run", "^"+test+"$", "-test.timeout", "15m", "-test.failfast")
	run.Env = append(append(os.Environ(), "SBX_MUTATIONS="), env...) //nolint:forbidigo // for tests only
	out, err := run.CombinedOutput()
	return string(out), err
}

// build compiles the tests, and returns the binary.
func build(t *testing.T, sources map[string][]byte) string {
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
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}
