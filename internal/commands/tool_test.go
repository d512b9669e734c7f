package commands

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/testkit/fake"
)

func TestVersionTouchesNothing(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.adjust = func(d *Deps) {
		d.Config = func() (*config.Config, error) { t.Error("reads configuration"); return nil, os.ErrInvalid }
		d.Fleet = func(context.Context) (*fleet.Fleet, error) { t.Error("opens providers"); return nil, os.ErrInvalid }
		d.Only = func(ctx context.Context, _ ...string) (*fleet.Fleet, error) { return d.Fleet(ctx) }
	}
	assert.Equal(t, "sbx 1.2.3 (abc, go1.26, linux/amd64)\n", b.run(t, "version").stdout)
	assert.Equal(t, map[string]any{"version": "1.2.3", "commit": "abc", "go": "go1.26", "os": "linux", "arch": "amd64"}, b.run(t, "version -o json").item(t))
	assert.Equal(t, "1.2.3\n", b.run(t, "version -o template={{.item.version}}{{\"\\n\"}}").stdout)
	assert.Equal(t, 2, b.run(t, "version extra").code)
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for line, code := range map[string]int{
		"completion bash": 0, "completion zsh": 0, "completion fish": 0, "completion powershell": 0,
		"completion": 2, "completion tcsh": 2, "completion bash zsh": 2,
		"completion bash -o json": 2, "completion bash -o yaml": 2, "completion bash -o name": 2,
	} {
		b := newBench()
		b.name = "/opt/bin/other"
		r := b.run(t, line)
		assert.Equal(t, code, r.code, line)
		if code != 0 {
			assert.Empty(t, r.stdout, line)
			continue
		}
		assert.Contains(t, r.stdout, "other", line)
		assert.NotContains(t, r.stdout, "sbx", line+": the program is called other")
		assert.Empty(t, r.stderr, line)
	}
}

func TestProvidersShowWhatEachCan(t *testing.T) {
	t.Parallel()
	full, bare := fake.New(fake.Options{Name: "full"}), fake.New(fake.Options{Name: "bare", Type: "e2b"}).Only("logs")
	b := newBench(full)
	b.members = append(b.members, bare)
	items := b.run(t, "providers -o json").list(t, "items")
	require.Len(t, items, 2)
	for _, item := range items {
		assert.Empty(t, item["account"])
	}
	abilities, ok := items[1]["abilities"].(map[string]any)
	require.True(t, ok)
	assert.Equal(t, map[string]any{"has": true, "reason": ""}, abilities["logs"])
	assert.Equal(t, map[string]any{"has": false, "reason": "a provider of type e2b has no exec"}, abilities["exec"])
	assert.Equal(t, "full\nbare\n", b.run(t, "providers -o name").stdout)
	assert.Equal(t, "bare\n", b.run(t, "providers --provider bare -o name").stdout)
	assert.Equal(t, 2, b.run(t, "providers --provider nope").code)
	b.tty, b.width, b.env = true, 80, []string{"NO_COLOR=1"}
	golden(t, "providers", b.run(t, "providers").stdout)
	assert.Equal(t, "ABILITIES\nlogs\n", b.run(t, "providers --provider bare --columns abilities").stdout)
}

func TestProvidersCallNobody(t *testing.T) {
	t.Parallel()
	b, p := oneFake()
	require.Equal(t, 0, b.run(t, "providers").code)
	assert.Empty(t, p.Calls())
}

func TestConfigAloneIsHelp(t *testing.T) {
	t.Parallel()
	r := newBench().run(t, "config")
	assert.Equal(t, 0, r.code)
	assert.Contains(t, r.stdout, "explain")
	wrong := newBench().run(t, "config explian")
	assert.Equal(t, 2, wrong.code)
	assert.Contains(t, wrong.stderr, "did you mean `sbx config explain`?")
}

func TestConfigExplainNamesOrigins(t *testing.T) {
	t.Parallel()
	b := newBench().configure(t, "limits: {max_delete: 7}\n")
	items := b.run(t, "config explain -o json").list(t, "items")
	seen := map[any]map[string]any{}
	for _, item := range items {
		assert.ElementsMatch(t, []string{"key", "value", "origin"}, keysOf(item))
		seen[item["key"]] = item
	}
	assert.Equal(t, "7", seen["limits.max_delete"]["value"])
	assert.Contains(t, seen["limits.max_delete"]["origin"], "config.yaml:1")
	assert.Equal(t, "default", seen["limits.concurrency"]["origin"])
	assert.Equal(t, 2, newBench().configure(t, "limit: 3\n").run(t, "config explain -o json").code)
}

func TestConfigPathWorksWhileAFileIsBroken(t *testing.T) {
	t.Parallel()
	b := newBench().configure(t, "{{{")
	r := b.run(t, "config path -o json")
	require.Equal(t, 0, r.code, r.stderr)
	item := r.list(t, "items")[0]
	assert.Equal(t, true, item["found"])
	assert.Equal(t, "user", item["role"])
}

func TestConfigInitKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	for line, file := range map[string]string{
		"config init":                 ".config/sbx/config.yaml",
		"config init mine.yaml":       "project/mine.yaml",
		"config init --config c.yaml": "project/c.yaml",
	} {
		b := newBench().configureNothing(t)
		b.workdir = filepath.Join(b.home, "project")
		want := filepath.Join(b.home, filepath.FromSlash(file))
		assert.Equal(t, "wrote "+want+"\n", b.run(t, line).stdout, line)
		info, err := os.Stat(want)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		again := b.run(t, line+" -o json")
		assert.Equal(t, 11, again.code)
		assert.Nil(t, again.object(t)["item"])
	}
	b := newBench().configureNothing(t)
	assert.Contains(t, b.run(t, "config init -o json").item(t)["path"], "config.yaml")
	assert.Equal(t, 0, b.run(t, "config explain").code, "the starter file is valid")
}
