//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// detach takes a program out of the terminal's reach.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
