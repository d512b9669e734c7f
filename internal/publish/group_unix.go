//go:build unix

package publish

import "syscall"

// ownGroup gives a program a session of its own: a Ctrl-C in the terminal does
// not reach it, and it has no terminal to ask questions on.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func terminateGroup(leader int) { signalGroup(leader, syscall.SIGTERM) }

func killGroup(leader int) { signalGroup(leader, syscall.SIGKILL) }

// groupLives says whether anything of the group is left that could still act.
func groupLives(leader int) bool { return syscall.Kill(-leader, 0) == nil && !onlyZombies(leader) }

// signalGroup fails only where nothing is left to signal.
func signalGroup(leader int, signal syscall.Signal) { _ = syscall.Kill(-leader, signal) }
