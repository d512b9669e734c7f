package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestStarterIsReadAsItIsAndWithEverySettingSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.must()
	w.user(Starter(testTypes()))
	after := w.must()
	assert.Equal(t, before.Profiles, after.Profiles)
	assert.Equal(t, before.Limits, after.Limits)

	settings := regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(Starter(testTypes()), "$1")
	w.user(settings)
	c := w.must()
	shown := before.Limits
	shown.MaxSandboxes = 50 // which has no default
	assert.Equal(t, shown, c.Limits, "the shown limits are the defaults")
	r, err := c.Run()
	require.NoError(t, err)
	assert.Equal(t, Size{MemoryBytes: 4 * gib, CPU: 2, DiskBytes: 8 * gib, Snapshot: "ai-agent-dev-light", Image: "registry.example/agent:1"}, r.Remote)
	assert.Equal(t, "https://control.example", r.CallbackURL)
	r.Here, r.Remote, r.CallbackURL, r.Origins = Size{}, Size{}, "", map[string]string{}
	assert.Equal(t, defaultRun(), r, "what else is shown are the defaults")
	assert.Equal(t, []string{"cloud", "far", "here"}, c.profileNames())
	assert.Equal(t, []string{"here"}, c.Use)
	assert.Equal(t, []Label{{"sbx/keep", "true"}}, c.Protect.Labels)
	if *update {
		require.NoError(t, os.WriteFile("testdata/starter.golden", []byte(Starter(testTypes())), 0o600))
	}
	want, err := os.ReadFile("testdata/starter.golden")
	require.NoError(t, err)
	assert.Equal(t, string(want), Starter(testTypes()))
}

func TestInit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path, err := Init(w.input(), "", "")
	require.NoError(t, err)
	assert.Equal(t, "DIR/home/.config/sbx/config.yaml", w.short(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	folder, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), folder.Mode().Perm())
	assert.True(t, w.must().File.Found)

	require.NoError(t, os.WriteFile(path, []byte("launch: here"), 0o600))
	_, err = Init(w.input(), "", "")
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	assert.NotEmpty(t, fault.HintOf(err))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "launch: here", string(content), "nothing is overwritten")

	path, err = Init(w.input(), "mine.yaml", "")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(w.work, "mine.yaml"), path)
}

// TestInitWithAType: the file has the profile; where one exists, the error has the lines that add it.
func TestInitWithAType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := Init(w.input(), "", "nocloud")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	path, err := Init(w.input(), "", "cloud")
	require.NoError(t, err)
	w.env = append(w.env, "CLOUD_KEY=s3cret")
	p, known := w.must().Find("cloud")
	require.True(t, known)
	assert.Equal(t, "s3cret", p.Settings["token"])
	assert.False(t, p.Implicit)
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	_, err = Init(w.input(), "", "cloud")
	assert.Equal(t, fault.KindRefused, fault.KindOf(err))
	refused, _ := errors.AsType[*fault.Error](err)
	assert.Equal(t, []string{"providers:", "  cloud:", "    type: cloud", "    token_env: CLOUD_KEY"}, refused.Excerpt)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

func TestInitSaysWhyNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.write(filepath.Join(w.root, "file"), "")
	_, err := Init(w.input(), filepath.Join(file, "config.yaml"), "")
	require.Error(t, err)
	assert.Equal(t, fault.KindUnknown, fault.KindOf(err))
	assert.Contains(t, err.Error(), "the file cannot be written: ")

	link := filepath.Join(w.root, "link")
	require.NoError(t, os.Symlink("nowhere", link))
	_, err = Init(w.input(), link, "")
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "a link is not followed")

	_, err = Init(Input{}, "", "")
	assert.Equal(t, fault.KindUsage, fault.KindOf(err))
}
