package commands

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with testdata/NAME.golden; what a mask matches may
// differ.
func golden(t *testing.T, name, got string, masks ...string) {
	t.Helper()
	for _, mask := range masks {
		got = regexp.MustCompile(mask).ReplaceAllString(got, "…")
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "write it with -update")
	assert.Equal(t, string(want), got)
}
