package metrics

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

func TestWhatTheFileSystemSays(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]string{
		syscall.EROFS: "ReadWritePaths", syscall.EDQUOT: "full", syscall.EISDIR: "not a folder", syscall.EACCES: "that you may write",
	} {
		err := unwritableFile(&fs.PathError{Op: "open", Path: "p", Err: cause})
		assert.Contains(t, fault.HintOf(err), want)
		require.ErrorIs(t, err, cause)
	}
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(unwritableFile(syscall.ENOSPC)))
}
