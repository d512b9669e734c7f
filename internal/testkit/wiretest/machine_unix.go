//go:build unix

package wiretest

import "syscall"

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killProcess(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }
