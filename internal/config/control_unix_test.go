//go:build unix

package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/process"
)

// stranger is a user that is neither root nor this one.
const stranger = 4242

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
}

// A configuration that another user can write says which programs sbx runs.
func TestAConfigurationThatOthersControlIsRefused(t *testing.T) {
	t.Parallel()
	const text = "providers: {p: {type: cloud, token_command: [touch, /tmp/run]}}"
	for name, tc := range map[string]struct {
		root   bool
		change func(t *testing.T, path string)
		want   string
		hint   string
	}{
		"mode":      {change: func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Chmod(path, 0o666)) }, want: "DIR/FILE can be written by every user (mode 0666)", hint: "chmod go-w "},
		"directory": {change: func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Chmod(filepath.Dir(path), 0o777)) }, want: "can be written by every user (mode 0777)", hint: "chmod go-w "},
		"owner":     {root: true, change: func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Chown(path, stranger, 0)) }, want: "DIR/FILE is owned by uid 4242, not by uid 0 (root)", hint: "chown 0 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.root {
				needsRoot(t)
			}
			for _, explicit := range []bool{false, true} {
				w := newWorld(t)
				path := w.user(text)
				if explicit {
					path = w.write(filepath.Join(w.root, "ci", "sbx.yaml"), text)
					w.file = path
				}
				require.Len(t, w.must().Profiles, 2)
				tc.change(t, path)
				_, err := w.load()
				require.Error(t, err)
				assert.Equal(t, fault.KindRefused, fault.KindOf(err), "a refusal by a guard")
				want := replaceFile(tc.want, w.short(path))
				assert.Contains(t, w.short(err.Error()), want)
				assert.Contains(t, fault.HintOf(err), tc.hint)
				assert.Contains(t, fault.HintOf(err), "--config FILE")
			}
		})
	}
}

func replaceFile(text, path string) string {
	if len(text) > 8 && text[:8] == "DIR/FILE" {
		return path + text[8:]
	}
	return text
}

// A planted record would decide what is terminated.
func TestAStateDirectoryThatOthersControlIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		root   bool
		change func(t *testing.T, w *world)
		want   string
	}{
		"mode":   {change: func(t *testing.T, w *world) { t.Helper(); require.NoError(t, os.Chmod(w.state, 0o777)) }, want: "the state directory is not used: DIR/state can be written by every user (mode 0777)"},
		"parent": {change: func(t *testing.T, w *world) { t.Helper(); require.NoError(t, os.Chmod(w.root, 0o777)) }, want: "the state directory DIR/state is not used: DIR can be written by every user (mode 0777)"},
		"owner":  {root: true, change: func(t *testing.T, w *world) { t.Helper(); require.NoError(t, os.Chown(w.state, stranger, 0)) }, want: "the state directory is not used: DIR/state is owned by uid 4242, not by uid 0 (root)"},
		"planted": {root: true, change: func(t *testing.T, w *world) {
			t.Helper()
			require.NoError(t, os.Chown(filepath.Join(w.state, "sbx.db"), stranger, 0))
		}, want: "the state directory DIR/state is not used: DIR/state/sbx.db is owned by uid 4242, not by uid 0 (root)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.root {
				needsRoot(t)
			}
			w := newWorld(t)
			w.write(filepath.Join(w.state, "sbx.db"), "")
			_, err := w.must().State()
			require.NoError(t, err)
			tc.change(t, w)
			_, err = w.must().State() // what needs no state goes on
			require.Error(t, err)
			assert.Equal(t, tc.want, w.short(err.Error()))
			assert.Equal(t, fault.KindRefused, fault.KindOf(err))
			assert.Contains(t, fault.HintOf(err), "name a directory of your own with SBX_STATE_DIR")
		})
	}
}

// Nobody writes to the pipe: only the context ends the wait.
func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file = filepath.Join(w.root, "pipe")
	require.NoError(t, syscall.Mkfifo(w.file, 0o600))
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	go cancel(why)
	_, err := Load(ctx, w.input())
	assert.Equal(t, why, err)
}

// TestRootKeepsNoStateInTheHomeOfAnother, as under sudo without -H: nothing is made there. A
// named state directory is used.
func TestRootKeepsNoStateInTheHomeOfAnother(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	home, passwd := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chown(home, stranger, stranger))
	input := func(env ...string) Input {
		return Input{Types: testTypes(), Process: process.Process{Environ: append(env, "HOME="+home), Home: passwd}}
	}
	c, err := Load(t.Context(), input())
	require.NoError(t, err, "reading needs no state")
	_, err = c.State()
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	require.ErrorContains(t, err, home+", which belongs to uid 4242")
	assert.Contains(t, fault.HintOf(err), "`sudo -H`")
	c, err = Load(t.Context(), input("SBX_STATE_DIR="+passwd))
	require.NoError(t, err)
	dir, err := c.State()
	require.NoError(t, err)
	assert.Equal(t, passwd, dir)

	require.NoError(t, os.Chown(home, 0, 0))
	c, err = Load(t.Context(), input())
	require.NoError(t, err)
	_, err = c.State()
	assert.NoError(t, err, "as in a container, whose HOME is root's")
}
