//go:build !unix

package process

import (
	"os"
	"os/exec"
)

// detach has nothing to do where programs have no terminal to lose.
func detach(*exec.Cmd) {}

// killSession kills the program alone.
func killSession(p *os.Process) error { return p.Kill() }
