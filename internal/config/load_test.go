package config

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
)

func TestLoadWithoutAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.must()
	require.Equal(t, []string{"here"}, c.profileNames())
	assert.Equal(t, "here", c.Launch)
	assert.Nil(t, c.Use)
	assert.Equal(t, Limits{MaxDelete: 20, MaxFraction: 25, Concurrency: 16, RequestTimeout: 10 * time.Second, ProviderTimeout: 20 * time.Second}, c.Limits)
	assert.Equal(t, w.state, c.StateDir)
	assert.Empty(t, c.Secrets())
	assert.False(t, c.NoColor)
	p := c.Profiles[0]
	assert.True(t, p.Implicit)
	assert.True(t, p.Owned.All)
	assert.Equal(t, map[string]string{"activity": "auto", "memory": "512M", "shell": `["sh","-c"]`}, p.Settings)
	assert.Equal(t, []Profile{p}, c.Selected())
}

func TestLoadPrecedence(t *testing.T) {
	t.Parallel()
	// each step adds a stronger source to the weaker ones
	steps := []struct {
		name string
		add  func(w *world)
		want string
	}{
		{"default", func(*world) {}, "20 <- default"},
		{"user", func(w *world) { w.user("limits:\n  max_delete: 10\n") }, "10 <- DIR/home/.config/sbx/config.yaml:2"},
		{"flag", func(w *world) { w.flags["max-delete"] = "900" }, "900 <- flag --max-delete"},
	}
	for n := range steps {
		t.Run(steps[n].name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, s := range steps[:n+1] {
				s.add(w)
			}
			assert.Equal(t, steps[n].want, w.origin(w.must(), "limits.max_delete"))
		})
	}
}

func TestLoadPrecedenceOfUse(t *testing.T) {
	t.Parallel()
	const profiles = "providers: {a: {type: cloud, token: x}, b: {type: cloud, token: y}}\n"
	steps := []struct {
		add  func(w *world)
		want string
	}{
		{func(w *world) { w.user(profiles) }, "a,b,here <- default"},
		{func(w *world) { w.user(profiles + "use: [a, b]\n") }, "a,b <- DIR/home/.config/sbx/config.yaml:2"},
		{func(w *world) { w.env = append(w.env, "SBX_PROVIDER=a") }, "a <- env SBX_PROVIDER"},
		{func(w *world) { w.flags["provider"] = "here,a,here" }, "here,a,here <- flag --provider"},
	}
	for n := range steps {
		t.Run(steps[n].want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, s := range steps[:n+1] {
				s.add(w)
			}
			assert.Equal(t, steps[n].want, w.origin(w.must(), "use"))
		})
	}
	w := newWorld(t)
	w.user(profiles)
	w.flags["provider"] = "here,a,here"
	c := w.must()
	assert.Equal(t, []string{"here", "a"}, c.Use, "a profile that is named twice is used once")
	assert.Len(t, c.Selected(), 2)
}

// TestNoFileOfTheWorkingDirectoryIsRead: a repository has no say in what ends.
func TestNoFileOfTheWorkingDirectoryIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dir := range []string{w.work, filepath.Dir(w.work), w.home} {
		w.write(filepath.Join(dir, ".sbx.yaml"), "nonsense")
	}
	c := w.must()
	assert.Empty(t, c.Warnings)
	assert.Equal(t, File{Path: filepath.Join(w.home, ".config", "sbx", "config.yaml"), Role: RoleUser}, c.File)
	assert.Equal(t, 20, c.Limits.MaxDelete)
}

func TestLoadColour(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": false, "1": true, "yes": true, "0": false, "false": false} {
		w := newWorld(t)
		w.env = append(w.env, "SBX_NO_COLOR="+text)
		assert.Equal(t, want, w.must().NoColor, text)
	}
	w := newWorld(t)
	w.flags["no-color"] = "true"
	assert.True(t, w.must().NoColor)
}

func TestUnattended(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "true <- DIR/home/.config/sbx/config.yaml:1", "0": "false <- env SBX_UNATTENDED", "true": "true <- env SBX_UNATTENDED"} {
		w := newWorld(t)
		w.user("cleanup: {unattended: true}")
		w.env = append(w.env, "SBX_UNATTENDED="+text)
		c := w.must()
		assert.Equal(t, want, w.origin(c, "cleanup.unattended"))
		assert.Equal(t, text != "0", c.Unattended)
	}
	w := newWorld(t)
	assert.False(t, w.must().Unattended)
	w.env = append(w.env, "SBX_UNATTENDED=maybe")
	assert.Equal(t, "env SBX_UNATTENDED: must be 1 or 0", w.fails())
}

func TestLoadExplicitFileReplacesTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("limits: {max_delete: 1}")
	w.write(w.work+"/mine.yaml", "limits: {concurrency: 99}")
	w.file = "mine.yaml"
	c := w.must()
	assert.Equal(t, 99, c.Limits.Concurrency)
	assert.Equal(t, 20, c.Limits.MaxDelete)
	assert.Equal(t, RoleExplicit, c.File.Role)
	assert.Equal(t, "DIR/home/project/deep/mine.yaml <- flag --config", w.origin(c, "config"))

	w.file = ""
	w.env = append(w.env, "SBX_CONFIG=/dev/null")
	c = w.must()
	assert.Equal(t, 16, c.Limits.Concurrency)
	assert.Equal(t, "/dev/null <- env SBX_CONFIG", w.origin(c, "config"))

	w.flags["config"] = ""
	assert.Contains(t, w.fails(), "flag --config: is empty")
}

func TestLoadRefusesBadFlagsAndVariables(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags map[string]string
		env   []string
		want  string
	}{
		"number":         {flags: map[string]string{"max-delete": "0"}, want: `flag --max-delete: must be a whole number from 1 to 1000000, not "0"`},
		"empty":          {flags: map[string]string{"max-delete": ""}, want: "flag --max-delete: is empty (is a shell variable unset?)"},
		"percent":        {flags: map[string]string{"max-fraction": "0.5"}, want: `flag --max-fraction: "0.5" is not a percentage`},
		"no profile":     {flags: map[string]string{"provider": "hree"}, want: `flag --provider: there is no profile "hree" (did you mean "here"?; allowed: here)`},
		"empty profile":  {flags: map[string]string{"provider": ""}, want: "flag --provider: names an empty profile (is a shell variable unset?)"},
		"empty item":     {flags: map[string]string{"provider": "here,"}, want: "flag --provider: names an empty profile"},
		"env profile":    {env: []string{"SBX_PROVIDER=cloud"}, want: `env SBX_PROVIDER: there is no profile "cloud" (allowed: here)`},
		"env option":     {env: []string{"HERE_MEMORY=lots"}, want: `env HERE_MEMORY: memory: "lots" is not a size`},
		"env quotes":     {env: []string{`CLOUD_KEY="abc"`}, want: "env CLOUD_KEY: token: is in quotes, which would be sent as a part of it"},
		"env BOM":        {env: []string{"CLOUD_KEY=\ufeffabc"}, want: "env CLOUD_KEY: token: begins with a byte order mark"},
		"env line end":   {env: []string{"CLOUD_KEY=abc\r"}, want: "env CLOUD_KEY: token: has a line end or another control character"},
		"state relative": {env: []string{"SBX_STATE_DIR=here"}, want: `env SBX_STATE_DIR: "here" is not an absolute path`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, tc.env...)
			maps.Copy(w.flags, tc.flags)
			assert.Contains(t, w.fails(), tc.want)
			_, err := w.load()
			assert.Equal(t, fault.KindUsage, fault.KindOf(err))
			assert.NotEmpty(t, fault.HintOf(err))
		})
	}
}

func TestLoadHintsAtTheVariableThatSwitchesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.user("use: [cloud]")
	_, err := w.load()
	assert.Equal(t, "set CLOUD_KEY to switch the profile cloud on", fault.HintOf(err))
	w.env = append(w.env, "CLOUD_KEY=k")
	assert.Equal(t, []string{"cloud"}, w.must().Use)
}

func TestAbsentProfileHint(t *testing.T) {
	t.Parallel()
	const page = "` in the configuration makes it; docs/PROVIDERS.md has its settings"
	types := append(testTypes(), providers.Type{Name: "cluster"}) // which no variable switches on
	for name, want := range map[string]string{
		"cluster": "`providers: {cluster: {type: cluster}}" + page,
		"clutser": "did you mean cluster? `providers: {cluster: {type: cluster}}" + page,
		"far":     "set FAR_URL to switch the profile far on, or `providers: {far: {type: far}}" + page,
		"cloud":   "set CLOUD_KEY to switch the profile cloud on",
		"cluod":   "did you mean cloud? Set CLOUD_KEY to switch it on",
		"watcher": "", "here": "", "nothing": "", "prdo": "",
	} {
		assert.Equal(t, want, AbsentProfileHint(types, []string{"prod"}, name), name)
	}
}

func TestEmptyVariablesAreUnset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "SBX_CONFIG=", "SBX_PROVIDER=", "CLOUD_KEY=", "HERE_MEMORY=", "XDG_CONFIG_HOME=")
	c := w.must()
	assert.Equal(t, []string{"here"}, c.profileNames())
	assert.Equal(t, "512M", c.Profiles[0].Settings["memory"])
}

func BenchmarkLoadWithoutFiles(b *testing.B) {
	dir := b.TempDir()
	in := Input{Types: testTypes()}
	in.Process.Home, in.Process.Workdir = dir, dir
	for b.Loop() {
		if _, err := Load(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
