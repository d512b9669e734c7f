package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
)

func TestUserFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env    []string
		passwd string
		want   string
	}{
		"passwd":          {nil, "/home/p", "/home/p/.config/sbx/config.yaml"},
		"HOME":            {[]string{"HOME=/home/e"}, "/home/p", "/home/e/.config/sbx/config.yaml"},
		"empty HOME":      {[]string{"HOME="}, "/home/p", "/home/p/.config/sbx/config.yaml"},
		"relative HOME":   {[]string{"HOME=x"}, "/home/p", "/home/p/.config/sbx/config.yaml"},
		"XDG":             {[]string{"HOME=/home/e", "XDG_CONFIG_HOME=/x"}, "/home/p", "/x/sbx/config.yaml"},
		"relative XDG":    {[]string{"XDG_CONFIG_HOME=x"}, "/home/p", "/home/p/.config/sbx/config.yaml"},
		"nowhere to look": {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, Input{Process: process.Process{Environ: tc.env, Home: tc.passwd}}.userFile())
		})
	}
}

func TestStateDir(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	for name, tc := range map[string]struct {
		env    []string
		passwd string
		want   entry
	}{
		"passwd":       {nil, "/home/p", entry{text: "/home/p/.local/state/sbx", origin: "default"}},
		"HOME":         {[]string{"HOME=/home/e"}, there, entry{text: "/home/e/.local/state/sbx", origin: "default"}},
		"no passwd":    {[]string{"HOME=/home/e"}, "", entry{text: "/home/e/.local/state/sbx", origin: "default"}},
		"relative":     {[]string{"HOME=e"}, "/home/p", entry{text: "/home/p/.local/state/sbx", origin: "default"}},
		"XDG":          {[]string{"XDG_STATE_HOME=/x"}, "/home/p", entry{text: "/x/sbx", origin: "env XDG_STATE_HOME"}},
		"relative XDG": {[]string{"XDG_STATE_HOME=x"}, "/home/p", entry{text: "/home/p/.local/state/sbx", origin: "default"}},
		"own":          {[]string{"XDG_STATE_HOME=/x", "SBX_STATE_DIR=/s/"}, "/home/p", entry{text: "/s", origin: "env SBX_STATE_DIR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Input{Process: process.Process{Environ: tc.env, Home: tc.passwd}}.stateDir()
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
		})
	}
	c, err := Load(t.Context(), Input{Types: testTypes()})
	require.NoError(t, err, "reading verbs work without any state")
	assert.Empty(t, c.StateDir)
	_, err = c.State()
	assert.Equal(t, fault.KindUsage, fault.KindOf(err), "no home at all")
	assert.Equal(t, "set SBX_STATE_DIR to an absolute path", fault.HintOf(err))
}

func TestRelativeFileWithoutAWorkdir(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work, w.file = "", "c.yaml"
	assert.Equal(t, `flag --config: "c.yaml" is relative and the working directory no longer exists`, w.fails())
}

// TestWorkdirOfTheInputHolds: a relative --config is looked for there.
func TestWorkdirOfTheInputHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file = "c.yaml"
	in := w.input()
	in.Process.Workdir, in.Workdir = "/", w.work
	file, err := Path(in)
	require.NoError(t, err)
	assert.Equal(t, File{Path: filepath.Join(w.work, "c.yaml"), Role: RoleExplicit}, file)
}

func TestPathWorksWhileTheFileIsBroken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := File{Path: filepath.Join(w.home, ".config", "sbx", "config.yaml"), Role: RoleUser}
	file, err := Path(w.input())
	require.NoError(t, err)
	assert.Equal(t, user, file)

	w.user("[broken")
	file, err = Path(w.input())
	require.NoError(t, err)
	user.Found = true
	assert.Equal(t, user, file)
}

func TestFlagNamesAreThoseThatLoadReads(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{
		"config", "provider", "no-color", "max-delete", "max-fraction", "concurrency",
		"command-timeout", "attempt-timeout", "deadline", "inactivity", "attempts", "retry-delay",
	}, flagNames())
}

// flagNames lists the flags that Load reads from Input.Flags.
func flagNames() []string {
	names := []string{flagConfig, flagProvider, flagNoColor}
	for _, l := range limitSettings() {
		if l.flag != "" {
			names = append(names, l.flag)
		}
	}
	return append(names, RunFlagNames()...)
}

// TestStateIsBelowHome, whatever lies below the home of the passwd entry.
func TestStateIsBelowHome(t *testing.T) {
	t.Parallel()
	home, passwd := t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(passwd, ".local/state/sbx/runs"), 0o700))
	c, err := Load(t.Context(), Input{Types: testTypes(), Process: process.Process{Environ: []string{"HOME=" + home}, Home: passwd}})
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, ".local/state/sbx"), c.StateDir)
	assert.Empty(t, c.Warnings)
}
