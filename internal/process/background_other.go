//go:build !unix

package process

import "os/exec"

// detach has nothing to do where programs have no terminal to lose.
func detach(*exec.Cmd) {}
