//go:build unix

package cli_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/tiertest"
)

// TestRequestsOfTasks counts what 200 tasks request of a cluster: each is made and deleted once, and nothing reads the
// whole namespace more than once for each. The other reads depend on how long a pod takes to run and to end; -v shows
// all of them.
func TestRequestsOfTasks(t *testing.T) {
	t.Parallel()
	tiertest.SkipUnlessLong(t, "200 tasks with real processes")
	const tasks = 200
	home := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	var file strings.Builder
	file.WriteString("tasks:\n")
	for i := range tasks {
		fmt.Fprintf(&file, "  - {name: t-%d, shell: echo work}\n", i)
	}
	write(".config/sbx/config.yaml", "providers:\n  kubernetes: {type: kubernetes, image: '"+kubernetestest.Image+"'}\n")
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := exec.CommandContext(t.Context(), "sbx", "run", "--provider", "kubernetes", "--file", write("tasks.yaml", file.String()), "--parallel", "16", "-o", "json")
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "SBX_STATE_DIR="+filepath.Join(home, "state"), "KUBECONFIG="+kubernetestest.Config(t, f.Listen()))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out[:min(len(out), 2000)])
	n, others, watches, commands := map[string]int{}, 0, 0, 0
	for _, call := range f.Calls("") {
		what := call.Route
		switch {
		case strings.Contains(call.URL, "watch="):
			what += " watched"
			watches++
		case strings.HasSuffix(call.Route, "/exec"):
			commands++
		default:
			others++
		}
		if strings.Contains(call.URL, "labelSelector") {
			what += " of one sandbox"
		}
		n[what]++
	}
	for _, what := range slices.Sorted(maps.Keys(n)) {
		t.Logf("%6.2f %s", float64(n[what])/tasks, what)
	}
	sandboxes := "/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"
	assert.Equal(t, tasks, n["POST "+sandboxes])
	assert.Equal(t, tasks, n["DELETE "+sandboxes+"/{name}"])
	assert.LessOrEqual(t, n["GET /api/v1/namespaces/{ns}/pods"], tasks, "proofs of ends")
	assert.Zero(t, n["GET "+sandboxes], "tasks list no sandboxes")
	assert.LessOrEqual(t, others, 10*tasks)
	assert.LessOrEqual(t, watches, tasks)
	assert.LessOrEqual(t, commands, 2*tasks+tasks/20, "a start and the output of each; a look may come before that")
}
