package daytona_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/testkit/daytonatest"
)

// TestMoreOutputThanIsKept: a command that writes more than is kept waits for its reader; all
// output comes in order.
func TestMoreOutputThanIsKept(t *testing.T) {
	t.Parallel()
	f, c := fresh(t, daytonatest.Options{})
	const size = guest.DefaultMaxOutput + 4<<20
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i>>16) ^ byte(i*7)
	}
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, want, 0o600))
	var out bytes.Buffer
	exit, err := c.Exec(t.Context(), f.Add(daytonatest.Seed{}), providers.Command{Args: []string{"cat", file}, Stdout: &out})
	require.NoError(t, err)
	require.NotNil(t, exit.Code)
	assert.Zero(t, *exit.Code)
	assert.Equal(t, size, out.Len())
	assert.Equal(t, sha256.Sum256(want), sha256.Sum256(out.Bytes()), "not as it was written")
}

// TestOutputThatIsLostIsAnError: output that is missing in the answers of the daemon is an error.
func TestOutputThatIsLostIsAnError(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"dropped":     `for f in "$HOME"/.sbx/runs/*; do mv "$f/out.0" "$f/out.40"; done`,
		"a full disk": `for f in "$HOME"/.sbx/runs/*; do mkdir "$f/out.cut"; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, c := fresh(t, daytonatest.Options{})
			var out bytes.Buffer
			exit, err := c.Exec(t.Context(), f.Add(daytonatest.Seed{}), providers.Command{Args: []string{"sh", "-c", "echo some words; sleep 0.2; " + spoil}, Stdout: &out})
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err), "%v: %q", err, out.String())
			require.NotNil(t, exit.Code, "its code is known")
			assert.Zero(t, *exit.Code)
		})
	}
}
