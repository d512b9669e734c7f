package kubernetes_test

import (
	"testing"

	"sbx/internal/testkit/kubernetestest"
	"sbx/internal/testkit/providertest"
)

// TestATaskNeedsTwoCommands: each is a connection to the node and a line in the audit log.
func TestATaskNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	providertest.CheckTaskCommands(t, c, func(string) int { return len(f.Calls(execRoute)) })
}

// TestALookNeedsTwoCommands: what tells the exit tells whether a shell answers.
func TestALookNeedsTwoCommands(t *testing.T) {
	t.Parallel()
	f := kubernetestest.New(t, kubernetestest.Options{})
	c := dialed(t, f)
	defer c.Close()
	providertest.CheckLookCommands(t, c, nil, func(string) int { return len(f.Calls(execRoute)) })
}
