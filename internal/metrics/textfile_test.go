package metrics_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/metrics"
)

func gauge(v float64) metrics.Set {
	var s metrics.Set
	for i := range 200 {
		s.Gauge("a", "A.", v, metrics.Label{"n", strconv.Itoa(i)})
	}
	return s
}

func TestTextfileIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sbx.prom")
	for v := range 3 {
		require.NoError(t, metrics.WriteTextfile(path, gauge(float64(v))))
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, gauge(float64(v)).Text(), string(content))
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode().Perm(), "the collector is another user")
	assert.Equal(t, []string{"sbx.prom"}, names(t, filepath.Dir(path)), "no draft is left")
}

// TestTextfileIsNeverTorn: a reader beside many writers sees whole files of one
// value.
func TestTextfileIsNeverTorn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sbx.prom")
	require.NoError(t, metrics.WriteTextfile(path, gauge(0)))
	var writers sync.WaitGroup
	for v := range 4 {
		writers.Go(func() {
			for range 10 {
				assert.NoError(t, metrics.WriteTextfile(path, gauge(float64(v))))
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		samples := parsed(t, string(content))["a"].GetMetric()
		require.Len(t, samples, 200)
		for _, m := range samples {
			require.InDelta(t, samples[0].GetGauge().GetValue(), m.GetGauge().GetValue(), 0)
		}
	}
}

func TestTextfileSaysWhyNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.prom"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for name, tc := range map[string]struct {
		path, hint string
		kind       fault.Kind
	}{
		"no folder":  {filepath.Join(dir, "none", "sbx.prom"), "check that the folder exists", fault.KindUnknown},
		"in a file":  {filepath.Join(dir, "file", "sbx.prom"), "check that the folder exists", fault.KindUnknown},
		"a folder":   {filepath.Join(dir, "folder.prom"), "not a folder", fault.KindUnknown},
		"other name": {filepath.Join(dir, "sbx.txt"), "end in .prom", fault.KindUsage},
		"hidden":     {filepath.Join(dir, ".sbx.prom"), "end in .prom", fault.KindUsage},
		"empty":      {"", "end in .prom", fault.KindUsage},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := metrics.WriteTextfile(tc.path, gauge(1))
			require.Error(t, err)
			assert.Equal(t, tc.kind, fault.KindOf(err), err)
			assert.Contains(t, fault.HintOf(err), tc.hint)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	t.Cleanup(func() {
		assert.Equal(t, []string{"file", "folder.prom"}, names(t, dir), "no draft is left after a refusal")
	})
}

// TestTextfileInAFolderThatRefuses needs a folder that refuses its owner, and
// root is refused by none but those of the kernel.
func TestTextfileInAFolderThatRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	if os.Getuid() == 0 {
		dir = "/proc"
	}
	err := metrics.WriteTextfile(filepath.Join(dir, "sbx.prom"), gauge(1))
	require.Error(t, err)
	assert.Equal(t, fault.KindUnknown, fault.KindOf(err))
	assert.Contains(t, fault.HintOf(err), "folder")
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var list []string
	for _, e := range entries {
		list = append(list, strings.TrimSpace(e.Name()))
	}
	return list
}
