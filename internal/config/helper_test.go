package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/process"
	"sbx/internal/providers"
)

// testTypes are made up: no test depends on a provider of the product.
func testTypes() []providers.Type {
	return []providers.Type{
		{Name: "here", Help: "this machine", Always: true, Facts: providers.Facts{HostBound: true, HostProcesses: true, InStateDir: true, SizedByProfile: true, OwnsAll: true, LaunchDefault: true}, Options: []providers.Option{
			{Name: "memory", Kind: providers.OptionSize, Default: "512M", Env: "HERE_MEMORY", Help: "memory of a sandbox"},
			{Name: "ttl", Kind: providers.OptionDuration, Help: "longest life"},
			{Name: "shell", Kind: providers.OptionArgs, Default: "[sh, -c]", Help: "the shell"},
			{Name: "tags", Kind: providers.OptionMap, Help: "tags"},
			{Name: "strict", Kind: providers.OptionBool, Help: "be strict"},
			{Name: "pids", Kind: providers.OptionCount, Help: "processes"},
		}},
		{Name: "cloud", Help: "a service", SwitchedOn: []string{"CLOUD_KEY"}, Options: []providers.Option{
			{Name: "token", Kind: providers.OptionText, Env: "CLOUD_KEY", Secret: true, Help: "the credential"},
			{Name: "url", Kind: providers.OptionText, Env: "CLOUD_URL", Default: "https://cloud.example", Help: "the address"},
			{Name: "pin", Kind: providers.OptionCount, Secret: true, Help: "a second secret"},
		}},
		{Name: "far", Help: "another service", SwitchedOn: []string{"FAR_URL"}, Options: []providers.Option{
			{Name: "url", Kind: providers.OptionText, Env: "FAR_URL", Help: "the address"},
		}},
		{Name: "watcher", Help: "knows more of a service", Options: []providers.Option{
			{Name: "url", Kind: providers.OptionText, Help: "the address"},
			{Name: "token", Kind: providers.OptionText, Secret: true, Help: "the credential"},
			{Name: providers.OptionAttach, Kind: providers.OptionText, Default: "cloud", Help: "the profile"},
		}, Attach: func(context.Context, providers.Profile, providers.Deps) (providers.Source, error) {
			return nil, errors.ErrUnsupported
		}},
	}
}

// world is a home, a folder deep below it to work in, and files.
type world struct {
	t     *testing.T
	root  string
	home  string
	work  string
	state string
	env   []string
	flags map[string]string
	file  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	w := &world{
		t: t, root: root, flags: map[string]string{},
		home: filepath.Join(root, "home"), work: filepath.Join(root, "home", "project", "deep"), state: filepath.Join(root, "state"),
	}
	require.NoError(t, os.MkdirAll(w.work, 0o700))
	w.env = []string{"SBX_STATE_DIR=" + w.state}
	return w
}

func (w *world) write(path, content string) string {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (w *world) user(content string) string {
	w.t.Helper()
	return w.write(filepath.Join(w.home, ".config", "sbx", "config.yaml"), content)
}

func (w *world) input() Input {
	return Input{
		Types: testTypes(), File: w.file, Flags: w.flags,
		Process: process.Process{
			Environ: w.env, Home: w.home, Workdir: w.work,
			Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		},
	}
}

func (w *world) load() (*Config, error) { return Load(w.t.Context(), w.input()) }

func (w *world) must() *Config {
	w.t.Helper()
	c, err := w.load()
	require.NoError(w.t, err)
	return c
}

// fails gives the text of the refused load, with the world's root as DIR.
func (w *world) fails() string {
	w.t.Helper()
	c, err := w.load()
	require.Error(w.t, err)
	require.Nil(w.t, c, "a config beside an error")
	return w.short(err.Error())
}

func (w *world) short(text string) string { return strings.ReplaceAll(text, w.root, "DIR") }

// origin gives value and origin of one key.
func (w *world) origin(c *Config, key string) string {
	w.t.Helper()
	for _, v := range c.Values() {
		if v.Key == key {
			return w.short(v.Value + " <- " + v.Origin)
		}
	}
	return "no such key"
}
