package local_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// blockedTerm waits with TERM blocked until one is pending, and takes its time then. It
// starts no other program: the shell would clear the mask.
const blockedTerm = `echo up
while [ -z "$asked" ]; do
	while read -r key value; do
		case "$key$value" in ShdPnd:*4000) asked=yes ;; esac
	done </proc/$$/status
done
while [ "${i:=0}" -lt 100000 ]; do i=$((i + 1)); done
echo bye`

// blocked runs blockedTerm.
func blocked() int {
	runtime.LockOSThread() // exec keeps the mask of the thread that calls it
	var term unix.Sigset_t
	term.Val[0] = 1 << (unix.SIGTERM - 1)
	err := unix.PthreadSigmask(unix.SIG_BLOCK, &term, nil)
	if err == nil {
		err = syscall.Exec("/bin/sh", []string{"sh", "-c", blockedTerm}, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 2
}
