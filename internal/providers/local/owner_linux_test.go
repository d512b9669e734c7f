package local_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/local"
	"sbx/internal/sandbox"
)

func TestAnOwnerLivesUntilItIsKilled(t *testing.T) {
	t.Parallel()
	owner := exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, owner.Start())
	pid, self := owner.Process.Pid, os.Getpid()
	birth := local.Birth(pid)
	assert.NotEmpty(t, birth)
	assert.Equal(t, sandbox.True, local.Lives(pid, birth))
	assert.Equal(t, sandbox.True, local.Lives(self, local.Birth(self)))
	assert.Equal(t, sandbox.False, local.Lives(self, birth), "another process has the number")

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	assert.Equal(t, sandbox.False, local.Lives(pid, birth))
	assert.Empty(t, local.Birth(pid))

	for _, none := range []string{"", "garbage", birth + "0/"} {
		assert.Equal(t, sandbox.Unknown, local.Lives(self, none), "%q", none)
	}
	assert.Equal(t, sandbox.Unknown, local.Lives(0, birth), "no number is nobody's")
	assert.Empty(t, local.Birth(-1))
}
