//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// detach takes a program out of the terminal's reach.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// killSession kills a program that was detached, with the programs of its process group.
func killSession(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }
