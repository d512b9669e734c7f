package identity

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// insideKey marks the re-executed test binary that is init of a PID namespace.
const insideKey = "IDENTITY_TEST_INSIDE"

// inNamespace runs the calling test once more as init of a PID namespace of its
// own and says whether this is that run. Every test that kills what a search
// finds begins with it: a search that is broken, for example by a planted bug, then finds only
// the test's own processes, and the kernel ends those that are left.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideKey) != "" {
		require.Equal(t, 1, os.Getpid())
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v", "-test.run", "^"+regexp.QuoteMeta(t.Name())+"$")
	cmd.Env = append(os.Environ(), insideKey+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = ownNamespace()
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no PID namespace may be made here: %v", err)
	}
	require.NoError(t, err, string(out))
	if _, reason, skipped := strings.Cut(string(out), "--- SKIP: "); skipped {
		t.Skip(reason)
	}
	assert.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// ownNamespace requests a PID and a mount namespace; without root it needs a user namespace.
func ownNamespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return attr
}

// ownProc mounts the process table of the namespace over that of the host.
func ownProc() error {
	return errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("proc", "/proc", "proc", 0, ""))
}
