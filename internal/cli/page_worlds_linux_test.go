package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/dockertest"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/stagedfleet"
)

// playedPages says where the commands of each page run.
func playedPages() map[string]playedPage {
	nothing := func(*testing.T, string) map[string]string { return nil }
	stuck := ""
	return map[string]playedPage{
		"docs/CLEANUP.md": {columns: 100, world: nothing},
		"docs/TASKS.md":   {columns: 80, world: clonedRepository},
		"docs/DOCKER.md": {columns: 100, world: func(t *testing.T, dir string) map[string]string {
			t.Helper()
			writeFile(t, dir, "tasks.yaml", "tasks: [{shell: 'echo done'}]\n")
			engine := dockertest.New(t, dockertest.Options{})
			return engine.Environment(engine.Listen())
		}, changed: replaceImages},
		"docs/KUBERNETES.md": {columns: 100, world: func(t *testing.T, dir string) map[string]string {
			t.Helper()
			cluster := kubernetestest.New(t, kubernetestest.Options{})
			file := kubernetestest.Config(t, cluster.Listen())
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			writeFile(t, dir, "kubeconfig", strings.ReplaceAll(string(text), "fake", "kind-agents"))
			require.NoError(t, os.MkdirAll(filepath.Join(dir, ".config", "sbx"), 0o700))
			writeFile(t, dir, ".config/sbx/config.yaml", "providers:\n  kind: {type: kubernetes, context: kind-agents, namespace: agents}\n")
			return map[string]string{"KUBECONFIG": filepath.Join(dir, "kubeconfig")}
		}, changed: replaceImages},
		"README.md": {columns: 80, long: true, world: func(t *testing.T, _ string) map[string]string {
			t.Helper()
			stage := stagedfleet.New(t, stagedfleet.Options{Few: true})
			stuck = stage.Refs(func(r stagedfleet.Role) bool { return r == stagedfleet.BusyLoop })[0]
			env := stage.Listen()
			engine, cluster := dockertest.New(t, dockertest.Options{}), kubernetestest.New(t, kubernetestest.Options{})
			maps.Copy(env, engine.Environment(engine.Listen()))
			env["KUBECONFIG"] = kubernetestest.Config(t, cluster.Listen())
			return env
		}, changed: func(text string) string {
			return strings.NewReplacer("e2b/i4fgm8h315t8e9bchr1ml", stuck, "e2b/i4fgm8", stuck).Replace(text)
		}},
	}
}

// replaceImages puts the image that the fake of an engine has in place of those of the page.
func replaceImages(text string) string {
	return strings.NewReplacer("debian:stable-slim", dockertest.Image, "my-agent:1", dockertest.Image).Replace(text)
}

// clonedRepository is a clone of a repository with one commit, whose remote is a folder beside it.
func clonedRepository(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := shell(t, append(os.Environ(), "HOME="+dir), `cd '`+dir+`'
git init -q --bare -b main origin.git
git clone -q origin.git . 2>/dev/null || { git init -q -b main . && git remote add origin "$PWD/origin.git"; }
echo "login" > login.txt
git add login.txt
git -c user.name=you -c user.email=you@example.com commit -q -m 'Begin'
git push -q origin HEAD:main
git fetch -q origin`)
	require.Empty(t, out)
	return nil
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}
