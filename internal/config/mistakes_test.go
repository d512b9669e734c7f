package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMistakes compares all mistakes of each file with the golden beside it.
func TestMistakes(t *testing.T) {
	t.Parallel()
	compareMistakes(t, "testdata/mistakes", func(t *testing.T, content []byte) string {
		t.Helper()
		w := newWorld(t)
		w.write(filepath.Join(w.root, "c.yaml"), string(content))
		w.file = filepath.Join(w.root, "c.yaml")
		_, err := w.load()
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		got := w.fails()
		for line := range strings.Lines(got) {
			assert.Regexp(t, `^DIR/c\.yaml:[1-9]\d*:[1-9]\d*: `, line)
		}
		return got
	})
}

// TestMistakesOfTaskFiles is the same for files of tasks.
func TestMistakesOfTaskFiles(t *testing.T) {
	t.Parallel()
	compareMistakes(t, "testdata/tasks", func(t *testing.T, content []byte) string {
		t.Helper()
		list, err := ReadTasks("t.yaml", content)
		require.Error(t, err)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
		assert.Equal(t, hintTasks, fault.HintOf(err))
		assert.Empty(t, list.Tasks)
		return err.Error()
	})
}

func compareMistakes(t *testing.T, folder string, read func(*testing.T, []byte) string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			got := read(t, content) + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
			assert.NotContains(t, got, "s3c", "a secret or the beginning of one")
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(w *world, path string)
		want string
	}{
		"folder":   {func(w *world, path string) { require.NoError(w.t, os.MkdirAll(path, 0o700)) }, ": is a directory, not a file"},
		"too big":  {func(w *world, path string) { w.write(path, strings.Repeat("#", maxFile+1)) }, ": is larger than 1 MiB"},
		"dangling": {func(w *world, path string) { w.write(path+"x", ""); require.NoError(w.t, os.Symlink("nowhere", path)) }, ": cannot be read: "},
		"not text": {func(w *world, path string) { w.write(path, "a: \x00\xff") }, ":1:1: not valid YAML: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, place := range []string{"home/.config/sbx/config.yaml", "c.yaml"} {
				w := newWorld(t)
				path := filepath.Join(w.root, place)
				if place == "c.yaml" {
					w.file = path
				}
				tc.make(w, path)
				assert.Contains(t, w.fails(), "DIR/"+place+tc.want)
				_, err := w.load()
				assert.Equal(t, fault.KindUsage, fault.KindOf(err))
				assert.Equal(t, hintFile, fault.HintOf(err))
			}
		})
	}
}

func TestLargestFileIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("limits: {max_delete: 7}\n#" + strings.Repeat("x", maxFile-25))
	assert.Equal(t, 7, w.must().Limits.MaxDelete)
}

func TestForbiddenFile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	w := newWorld(t)
	require.NoError(t, os.Chmod(w.user("use: [here]"), 0))
	assert.Contains(t, w.fails(), "config.yaml: cannot be read: permission denied")
}

func TestExplicitFileMustBeThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file = filepath.Join(w.root, "no.yaml")
	assert.Equal(t, "DIR/no.yaml: cannot be read: no such file or directory", w.fails())
}

func TestEmptyFilesSayNothing(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "\n", "# only a comment\n", "---\n", "~", "\ufeff# with a byte order mark\n"} {
		w := newWorld(t)
		w.user(content)
		assert.Equal(t, []string{"here"}, w.must().profileNames(), "%q", content)
	}
}
