package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
)

// foreign writes files into one folder and gives their paths, in the order of the arguments: name, text.
func foreign(t *testing.T, files ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o600))
		paths = append(paths, path)
	}
	return paths
}

// values are the imported settings by key.
func values(i config.Imported) map[string]string {
	all := map[string]string{}
	for _, s := range i.Settings {
		all[s.Key] = s.Value
	}
	return all
}

func TestImportTranslates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files []string
		want  map[string]string
	}{
		"yaml": {
			[]string{"base.yaml", "daytona:\n  sandbox_memory_gb: 6\n  sandbox_cpu: 3\n  sandbox_disk_gb: 10\n"},
			map[string]string{"run.memory": "6G", "run.cpu": "3", "run.disk": "10G"},
		},
		"later files win": {
			[]string{"base.yaml", "daytona: {snapshot: a, sandbox_cpu: 2}\n", "production.yaml", "daytona:\n  snapshot: b\n"},
			map[string]string{"run.snapshot": "b", "run.cpu": "2"},
		},
		"variables": {
			[]string{".env", "# comment\n\nexport SANDBOX_MEMORY_GB=4\nSANDBOX_CPU=\"2\" # cores\r\nSANDBOX_DISK_GB=8 # GiB\nSANDBOX_IMAGE='registry.example/agent:1'\n"},
			map[string]string{"run.memory": "4G", "run.cpu": "2", "run.disk": "8G", "run.image": "registry.example/agent:1"},
		},
		"quotes and comments": {
			[]string{".env", "\ufeffSANDBOX_SNAPSHOT=\"light\" # not \"heavy\" any more\nSANDBOX_IMAGE='img:1' # it's ours\nSANDBOX_CPU=3\t# cores\n"},
			map[string]string{"run.snapshot": "light", "run.image": "img:1", "run.cpu": "3"},
		},
		"a hash in a value": {[]string{".env", "SANDBOX_IMAGE=img#1\nSANDBOX_SNAPSHOT=\"a#b\"\n"}, map[string]string{"run.image": "img#1", "run.snapshot": "a#b"}},
		"a value over several lines": {
			[]string{".env", "KEY=\"-----BEGIN\nSANDBOX_CPU=9\n-----END\"\nSANDBOX_CPU=3\nSANDBOX_IMAGE=img:1\n"},
			map[string]string{"run.cpu": "3", "run.image": "img:1"},
		},
		"variables over yaml": {
			[]string{"base.yaml", "daytona: {snapshot: a}\n", ".env", "SANDBOX_SNAPSHOT=b\n"},
			map[string]string{"run.snapshot": "b"},
		},
		"a profile": {
			[]string{"base.yaml", "daytona: {api_url: \"https://daytona.example/api\", api_key: dtn_secret77}\n"},
			map[string]string{"providers.daytona.url": "https://daytona.example/api", "providers.daytona.token_env": "DAYTONA_API_KEY"},
		},
		"nothing": {[]string{"empty.yaml", "# nothing\n"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Import(t.Context(), foreign(t, tc.files...))
			require.NoError(t, err)
			assert.Equal(t, tc.want, values(got))
			assert.NotContains(t, got.Block, "dtn_secret77")
		})
	}
}

func TestImportSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	paths := foreign(t, "base.yaml", "llm:\n  key: sk-hunter2-7f3a\n  models: [a, b]\ndaytona:\n  timeout: 5\n  \"odd\\e[31m\\nkey\": 1\n", ".env", "OPENAI_API_KEY=sk-hunter2-7f3a\nsk-hunter2-7f3a is no line\n")
	got, err := config.Import(t.Context(), paths)
	require.NoError(t, err)
	for _, want := range []string{
		"base.yaml:2: llm.key: unknown key", "base.yaml:3: llm.models: unknown key", "base.yaml:5: daytona.timeout: unknown key", "daytona.odd?[31m?key: unknown key",
		".env:1: OPENAI_API_KEY: unknown key", ".env:2: the line is not KEY=VALUE",
		"#memory: 4G # the default of OmoiOS", "#cpu: 2 # the default", "#disk: 8G # the default", "#snapshot: ai-agent-dev-light # the default",
	} {
		assert.Contains(t, got.Block, want)
	}
	assert.NotContains(t, got.Block, "hunter2")
	assert.Len(t, got.Ignored, 6)
	assert.Empty(t, got.Settings)
}

func TestASnapshotDecidesTheSizes(t *testing.T) {
	t.Parallel()
	got, err := config.Import(t.Context(), foreign(t, "base.yaml", "daytona: {snapshot: dev, sandbox_memory_gb: 4}\n"))
	require.NoError(t, err)
	assert.Contains(t, got.Block, "\n  #memory: 4G # from ")
	assert.Contains(t, got.Block, "\n  snapshot: dev # from ")
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, text, says string }{
		"no yaml":        {"base.yaml", "daytona:\n  snapshot: [a\n", "base.yaml:"},
		"a list":         {"base.yaml", "- a\n", "base.yaml:1: the file must be a mapping of keys to values"},
		"a tab":          {"base.yaml", "daytona:\n\tsnapshot: a\n", "base.yaml:2"},
		"twice":          {"base.yaml", "daytona:\n  snapshot: a\n  snapshot: b\n", "base.yaml:3: \"snapshot\" is given twice, first in line 2"},
		"too much":       {"base.yaml", "daytona:\n  sandbox_memory_gb: 64\n", "base.yaml:2: daytona.sandbox_memory_gb must be a whole number of GiB from 4 to 8"},
		"empty":          {"base.yaml", "daytona:\n  snapshot:\n", "daytona.snapshot has no value"},
		"a variable":     {".env", "SANDBOX_SNAPSHOT=${SNAP:-light}\n", ".env:1: SANDBOX_SNAPSHOT takes its value from a variable"},
		"empty variable": {".env", "SANDBOX_CPU=\n", ".env:1: SANDBOX_CPU has no value"},
		"secret in url":  {"base.yaml", "daytona: {api_url: \"https://u:hunter2@h/api\"}\n", "may be a secret"},
		"no url":         {"base.yaml", "daytona: {api_url: hunter2}\n", "is no address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Import(t.Context(), foreign(t, tc.file, tc.text))
			require.Error(t, err)
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.Contains(t, err.Error(), tc.says)
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotEmpty(t, fault.HintOf(err))
		})
	}
	_, err := config.Import(t.Context(), []string{filepath.Join(t.TempDir(), "none.yaml")})
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	huge := foreign(t, "huge.yaml", strings.Repeat("# comment\n", 200_000))
	_, err = config.Import(t.Context(), huge)
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}
