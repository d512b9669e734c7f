package kubernetes_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"sbx/internal/providers"
	"sbx/internal/providers/kubernetes"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/tiertest"
)

// kubectl runs Kubernetes' own program as an administrator of the cluster.
func kubectl(t *testing.T, file, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", append([]string{"--kubeconfig", file, "-n", kubernetestest.Namespace}, args...)...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(input), &said
	out, err := cmd.Output()
	require.NoError(t, err, "kubectl %v: %s", args, said.String())
	assert.Empty(t, said.String(), "a warning of kubectl %v", args)
	return string(out)
}

// TestFilesOfDeployOnACluster has a real API server check every file of deploy/ that is for one.
func TestFilesOfDeployOnACluster(t *testing.T) {
	t.Parallel()
	file := realCluster(t)
	names, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "*.yaml"))
	require.NoError(t, err)
	objects := map[string]int{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if !strings.Contains(string(text), "\nkind: ") {
			continue // packages, and the rules of Prometheus
		}
		applied := kubectl(t, file, string(text), "apply", "--dry-run=server", "-f", "-")
		objects[filepath.Base(name)] = strings.Count(applied, " (server dry run)\n") // another test may have applied some
		assert.Equal(t, objects[filepath.Base(name)], strings.Count(applied, "\n"), applied)
	}
	assert.Equal(t, map[string]int{"cron.yaml": 8, "kubernetes-role.yaml": 3}, objects)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "cron.yaml"))
	require.NoError(t, err)
	withAccount := strings.NewReplacer("#serviceAccountName: sbx", "serviceAccountName: sbx", "automountServiceAccountToken: false", "automountServiceAccountToken: true").Replace(string(text))
	assert.Equal(t, 4, strings.Count(kubectl(t, file, withAccount, "apply", "--dry-run=server", "-o", "yaml", "-f", "-"), " serviceAccountName: sbx\n"))
}

// TestAccountOfAPodOnACluster has the account of deploy/kubernetes-role.yaml do what a layer does in its own cluster.
func TestAccountOfAPodOnACluster(t *testing.T) {
	t.Parallel()
	file := realCluster(t)
	role := filepath.Join("..", "..", "..", "deploy", "kubernetes-role.yaml")
	kubectl(t, file, "", "apply", "-f", role)
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	ca, err := os.ReadFile(config.CAFile)
	require.NoError(t, err)
	folder := t.TempDir()
	for name, text := range map[string]string{"token": kubectl(t, file, "", "create", "token", "sbx"), "ca.crt": string(ca), "namespace": kubernetestest.Namespace} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	at, err := url.Parse(config.Host)
	require.NoError(t, err)
	variables := map[string]string{"KUBERNETES_SERVICE_HOST": at.Hostname(), "KUBERNETES_SERVICE_PORT": at.Port()}
	label := fmt.Sprintf("sbx-view=account-%d", os.Getpid())
	p, err := kubernetes.OpenWithAccount(providers.Profile{Name: "cluster", Type: kubernetes.TypeName, Settings: map[string]string{"image": kubernetestest.Image, "label": label}},
		providers.Deps{Now: time.Now, Lookup: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}, folder)
	require.NoError(t, err)
	c, ok := p.(*kubernetes.Client)
	require.True(t, ok)
	defer c.Close()
	require.Eventually(t, func() bool { // the rules of a new Role take a moment
		checks := c.Check(t.Context())
		for _, check := range checks {
			if check.Verdict == sandbox.False {
				t.Log(check.Message)
				return false
			}
		}
		return len(checks) > 1
	}, tiertest.Limit(t), 100*time.Millisecond)
	made, err := c.Create(t.Context(), sandbox.Spec{Image: kubernetestest.Image})
	require.NoError(t, err)
	require.Len(t, list(t, c), 1)
	require.NoError(t, c.Terminate(t.Context(), made.ID, providers.TerminateOptions{}))
	require.Eventually(t, func() bool {
		proof, err := c.VerifyEnd(t.Context(), made.ID, providers.EndQuery{Now: time.Now()})
		return err == nil && proof.Ended == sandbox.True
	}, tiertest.Limit(t), 100*time.Millisecond)
}
