package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/process"
)

// A relative --config and the project's file are found by it.
func TestCompleteKnowsWhereItStands(t *testing.T) { // changes the working directory
	t.Chdir(t.TempDir())
	want, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, want, completeProcess(process.Process{}).Workdir)
	assert.Equal(t, "/given", completeProcess(process.Process{Workdir: "/given"}).Workdir)

	gone := filepath.Join(want, "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	t.Chdir(gone)
	require.NoError(t, os.Remove(gone))
	assert.Empty(t, completeProcess(process.Process{}).Workdir, "a folder that is gone")
}

func TestCompleteFillsInTheRest(t *testing.T) {
	t.Parallel()
	p := completeProcess(process.Process{})
	assert.NotNil(t, p.Now)
	assert.NotEmpty(t, p.Home)
	assert.NotContains(t, p.User(), "uid ", "a runbook's page has the name of the account, also under cron, which sets none")
	assert.False(t, p.Stdout.TTY, "a stream without a descriptor is no terminal")
}
