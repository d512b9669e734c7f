package look

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/ops"
	"sbx/internal/process"
)

func TestOtherProgramsOfThatName(t *testing.T) {
	t.Parallel()
	folder := func(t *testing.T, mode os.FileMode) string {
		t.Helper()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sbx"), nil, mode))
		return dir
	}
	mine, other, text, none := folder(t, 0o755), folder(t, 0o755), folder(t, 0o600), t.TempDir()
	link := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(mine, "sbx"), filepath.Join(link, "sbx")))
	here, err := os.Getwd()
	require.NoError(t, err)
	relative, err := filepath.Rel(here, other)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		path []string
		want ops.CheckStatus
	}{
		"alone":              {[]string{none, mine}, ops.CheckOK},
		"not on PATH":        {[]string{none}, ops.CheckOK},
		"through a link":     {[]string{link, mine}, ops.CheckOK},
		"first":              {[]string{mine, other}, ops.CheckOK},
		"behind another":     {[]string{other, mine}, ops.CheckWarning},
		"instead of":         {[]string{other}, ops.CheckWarning},
		"twice the same":     {[]string{other, other, mine}, ops.CheckWarning},
		"a text is no rival": {[]string{text, mine}, ops.CheckOK},
		"relative folders":   {[]string{relative, "", mine}, ops.CheckOK},
		"no PATH":            {nil, ops.CheckOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := &ops.Env{
				Process: process.Process{Environ: []string{"PATH=" + strings.Join(tc.path, string(os.PathListSeparator))}},
				Program: func() (string, error) { return filepath.Join(mine, "sbx"), nil },
			}
			rows := checkPath(env)
			require.Len(t, rows, 1)
			assert.Equal(t, tc.want, rows[0].Status())
		})
	}
	unknown := &ops.Env{Program: func() (string, error) { return "", errors.New("no such file") }}
	assert.Equal(t, ops.CheckNote, checkPath(unknown)[0].Status())
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	row := checkFolder("state directory", filepath.Join(file, "state"))
	assert.Equal(t, ops.CheckProblem, row.Status())
	assert.Contains(t, row.Hint, "SBX_STATE_DIR")
	dir := filepath.Join(t.TempDir(), "new")
	assert.Equal(t, ops.CheckOK, checkFolder("state directory", dir).Status())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "the probe is gone")
}

func TestTheFileIsTold(t *testing.T) {
	t.Parallel()
	user := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.MkdirAll(filepath.Join(user, "sbx"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(user, "sbx", "config.yaml"), nil, 0o600))
	checks := func(configHome string) []ops.Check {
		p := process.Process{Args: []string{"sbx"}, Home: t.TempDir(), Environ: []string{"XDG_CONFIG_HOME=" + configHome}}
		env := &ops.Env{Process: p, Input: func() config.Input { return config.Input{Process: p} }}
		return checkFile(env)
	}
	rows := checks(user)
	require.Len(t, rows, 1)
	assert.Contains(t, rows[0].Message, "is read")
	assert.Contains(t, checks(t.TempDir())[0].Message, "does not exist")
}
