package wiretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// shellArgs is how each shell is started that images have as theirs.
func shellArgs(shell string) []string {
	if shell == "busybox" {
		return []string{"busybox", "sh"}
	}
	return []string{shell}
}

// DefaultShell is the shell that Daytona's daemon takes from this host: zsh, else bash, else sh.
func DefaultShell() string {
	for _, shell := range []string{"zsh", "bash"} {
		if _, err := exec.LookPath(shell); err == nil {
			return shell
		}
	}
	return "sh"
}

// EachShell runs a test for each shell that an image may have. Where one is not installed its
// subtest skips.
func EachShell(t *testing.T, test func(t *testing.T, shell string)) {
	t.Helper()
	for _, shell := range []string{"dash", "bash", "busybox", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("no %s here", shell)
			}
			test(t, shell)
		})
	}
}

func (m *Machine) useShell(shell string) error {
	if shell == "" {
		return nil
	}
	path, err := exec.LookPath(shell)
	if err != nil {
		return err
	}
	m.bin = filepath.Join(m.Home, ".bin")
	if err := os.Mkdir(m.bin, 0o700); err != nil {
		return err
	}
	return os.Symlink(path, filepath.Join(m.bin, "sh"))
}

// PipedShell is a program that reads a command from stdin with a shell of this host.
func PipedShell(shell string) Process { return Process{Args: shellArgs(shell)} }
